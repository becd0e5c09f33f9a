//! The texts of the pages in other languages, keyed by the English text: one gettext PO file per language, which
//! translators' tools read.
//!
//! Not supported: plurals and placeholders.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The languages: tag (RFC 5646) and texts; English has no file. Pages say "Sie", "usted" and "vous".
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

/// Reads pairs of `msgid` and `msgstr`, each on one line and without escapes. The first pair, with an empty
/// `msgid`, is the file's header.
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
