//! The nearest known name to a mistyped one.

use strsim::levenshtein;

/// The name nearest to `word`, if at most a third of the letters of `word` differ.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, name) = names.map(|name| (levenshtein(word, name), name)).min()?;
    (distance * 3 <= word.len()).then_some(name)
}

/// The message that no `kind` is called `name`, with the nearest known name.
#[must_use]
pub fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown {kind} {name:?}: did you mean {near:?}?"),
        None => format!("unknown {kind} {name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_suggested() {
        let names = ["EDGE_BASE_URL", "EDGE_LISTEN"];
        assert_eq!(nearest("EDGE_BASEURL", names.into_iter()), Some("EDGE_BASE_URL"));
        assert_eq!(nearest("EDGE_SOMETHING_ELSE", names.into_iter()), None);
    }
}
