//! The texts of the pages in other languages: one file each, in the format that translators' tools read (gettext PO), by the
//! English text in the source.
//!
//! Deliberately absent: plurals and places for values; a text is the same for everybody.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::language::Language;

type Catalogue = HashMap<&'static str, &'static str>;

/// The texts of a language; English has none but its own.
pub(super) fn of(language: Language) -> Option<&'static Catalogue> {
    macro_rules! catalogue {
        ($file:literal) => {{
            static TEXTS: LazyLock<Catalogue> = LazyLock::new(|| parse(include_str!($file)));
            Some(&*TEXTS)
        }};
    }
    match language {
        Language::English => None,
        Language::Arabic => catalogue!("words/ar.po"),
        Language::German => catalogue!("words/de.po"),
        Language::Spanish => catalogue!("words/es.po"),
        Language::French => catalogue!("words/fr.po"),
        Language::Japanese => catalogue!("words/ja.po"),
    }
}

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
