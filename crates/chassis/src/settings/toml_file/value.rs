//! One value of a file.
//!
//! Methods that start with `as_` return `None` for other kinds; all others also record the mistake.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::Document;

/// The value of a key, or a member of its list.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    document: &'a Document<'a>,
    key: &'a str,
    inner: &'a Spanned<DeValue<'a>>,
}

impl<'a> Value<'a> {
    pub(super) fn new(document: &'a Document<'a>, key: &'a str, inner: &'a Spanned<DeValue<'a>>) -> Self {
        Self { document, key, inner }
    }

    pub(super) fn span(self) -> Range<usize> {
        self.inner.span()
    }

    pub(super) fn as_toml(self) -> &'a DeValue<'a> {
        self.inner.get_ref()
    }

    /// A text that is not empty.
    pub fn string(self) -> Option<String> {
        match self.as_toml() {
            DeValue::String(text) if text.trim().is_empty() => {
                self.wrong("expected a text that is not empty")
            }
            DeValue::String(text) => return Some(text.clone().into_owned()),
            _ => self.wrong("expected a text in quotes"),
        }
        None
    }

    /// Texts that are not empty, at least one.
    pub fn strings(self) -> Option<Vec<String>> {
        let Some(members) = self.as_list() else {
            self.wrong("expected a list of texts: [\"…\"]");
            return None;
        };
        Some(members.into_iter().filter_map(Self::string).collect())
    }

    /// `true` or `false`.
    pub fn boolean(self) -> Option<bool> {
        let flag = self.as_boolean();
        if flag.is_none() {
            self.wrong("expected true or false");
        }
        flag
    }

    /// A text, a whole number, `true` or `false`, as the text of an environment variable.
    pub fn scalar(self) -> Option<String> {
        match self.as_toml() {
            DeValue::Boolean(flag) => Some(flag.to_string()),
            DeValue::Integer(number) => Some(number.to_string()),
            _ => self.string(),
        }
    }

    /// The value of one of these words.
    pub fn one_of<T: Copy>(self, words: &[(&str, T)]) -> Option<T> {
        let text = self.string()?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let choice = choice(words.iter().map(|(word, _)| format!("{word:?}")));
            self.wrong(format!("{} {text:?} is unknown: write {choice}", self.key));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// A whole number that is not negative.
    pub fn as_u64(self) -> Option<u64> {
        u64::try_from(self.as_i64()?).ok()
    }

    /// A whole number.
    pub fn as_i64(self) -> Option<i64> {
        match self.as_toml() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    /// `true` or `false`.
    pub fn as_boolean(self) -> Option<bool> {
        match self.as_toml() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The members of a list that is not empty.
    pub fn as_list(self) -> Option<Vec<Self>> {
        match self.as_toml() {
            DeValue::Array(members) if !members.is_empty() => {
                let member = |inner| Self { inner, ..self };
                Some(members.iter().map(member).collect())
            }
            _ => None,
        }
    }

    /// The keys and values of a table with arbitrary keys.
    pub fn as_entries(self) -> Option<Vec<(&'a str, Self)>> {
        let DeValue::Table(fields) = self.as_toml() else {
            return None;
        };
        let entry = |(key, inner): (&'a Spanned<_>, _)| {
            let key = AsRef::<str>::as_ref(key.get_ref());
            (key, Self { key, inner, ..self })
        };
        Some(fields.iter().map(entry).collect())
    }

    /// Records a mistake at its line.
    pub fn wrong(self, text: impl Into<String>) {
        self.document.wrong(&self.inner.span(), text);
    }

    /// Its line, counted from 1.
    pub fn line(self) -> usize {
        self.document.line(&self.inner.span())
    }
}

/// `"a", "b" or "c"`.
fn choice(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}
