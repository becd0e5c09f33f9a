//! The texts of the pages in other languages: one file each, in the format that translators' tools read (gettext PO), by the
//! English text in the source.
//!
//! Deliberately absent: plurals and places for values; a text is the same for everybody.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The languages, each by its tag (RFC 5646) and its texts; English has none but its own. Pages say "Sie", "usted" and "vous".
pub(super) const LANGUAGES: [(&str, &str); 6] = [
    ("en", ""),
    ("ar", include_str!("words/ar.po")),
    ("de", include_str!("words/de.po")),
    ("es", include_str!("words/es.po")),
    ("fr", include_str!("words/fr.po")),
    ("ja", include_str!("words/ja.po")),
];

type Catalogue = HashMap<&'static str, &'static str>;

/// The texts of each language.
pub(super) static TEXTS: LazyLock<[Catalogue; 6]> = LazyLock::new(|| LANGUAGES.map(|(_, file)| parse(file)));

/// Reads pairs of `msgid` and `msgstr`, each on one line and without escapes; the first pair, of an empty text, is the file's
/// own head.
fn parse(file: &'static str) -> Catalogue {
    let quoted = |line: &'static str, keyword: &str| -> Option<&'static str> {
        line.strip_prefix(keyword)?.strip_prefix(" \"")?.strip_suffix('"')
    };
    let mut english = None;
    let mut texts = Catalogue::new();
    for line in file.lines() {
        if let Some(text) = quoted(line, "msgid") {
            english = Some(text).filter(|text| !text.is_empty());
        } else if let (Some(text), Some(english)) = (quoted(line, "msgstr"), english.take()) {
            texts.insert(english, text);
        }
    }
    texts
}

#[cfg(test)]
mod tests;
