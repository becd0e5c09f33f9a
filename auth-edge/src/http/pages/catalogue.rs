//! The texts of the pages in other languages: one file each, in the format that translators' tools read (gettext PO), by the
//! English text in the source.
//!
//! Deliberately absent: plurals and places for values; a text is the same for everybody.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::language::Language;

type Catalogue = HashMap<&'static str, &'static str>;

/// The texts of each language, in the order of [`Language::ALL`]; English has none but its own.
static TEXTS: LazyLock<[Catalogue; 6]> = LazyLock::new(|| {
    let files = [
        "",
        include_str!("words/ar.po"),
        include_str!("words/de.po"),
        include_str!("words/es.po"),
        include_str!("words/fr.po"),
        include_str!("words/ja.po"),
    ];
    files.map(parse)
});

/// The texts of a language.
pub(super) fn of(language: Language) -> &'static Catalogue {
    &TEXTS[language as usize]
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
