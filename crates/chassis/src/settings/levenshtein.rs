//! The nearest known name to a mistyped one.

/// The nearest of `names` to `word`, if one is near enough to be meant: at most a third of its letters differ.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, name) = names.map(|name| (distance(word, name), name)).min()?;
    (distance * 3 <= word.len()).then_some(name)
}

fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(a != *b)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changed_added_and_lost_letters() {
        for (from, to, expected) in [
            ("", "", 0),
            ("kitten", "sitting", 3),
            ("abc", "", 3),
            ("", "ab", 2),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let names = ["EDGE_BASE_URL", "EDGE_LISTEN"];
        assert_eq!(nearest("EDGE_BASEURL", names.into_iter()), Some("EDGE_BASE_URL"));
        assert_eq!(nearest("EDGE_SOMETHING_ELSE", names.into_iter()), None);
    }
}
