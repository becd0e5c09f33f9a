//! The discovery document for the checks: lists, texts and booleans.

use serde_json::{Map, Value};

/// Longest text of a provider in a finding: longer ones are not names.
const MOST_SHOWN: usize = 200;

/// A discovery document.
#[derive(Clone, Copy)]
pub(super) struct DiscoveryDocument<'a>(pub(super) &'a Map<String, Value>);

impl<'a> DiscoveryDocument<'a> {
    /// A list of texts; `None` if the document has none.
    pub(super) fn list(self, name: &str) -> Option<Vec<&'a str>> {
        let list = self.0.get(name)?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect())
    }

    /// A text.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// A boolean; `None` if the document has none.
    pub(super) fn says(self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }
}

/// The start of a list, for people.
pub(super) fn format_list(list: &[&str]) -> String {
    let whole = list.join(", ");
    match whole.char_indices().nth(MOST_SHOWN) {
        None if whole.is_empty() => "none".to_owned(),
        None => whole,
        Some((end, _)) => format!("{}…", whole.get(..end).unwrap_or_default()),
    }
}
