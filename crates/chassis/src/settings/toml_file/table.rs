//! One table of a file.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::super::unknown;
use super::{Document, Value};

/// A table: it hands out values by their keys, and remembers which keys were read.
pub struct Table<'a> {
    document: &'a Document<'a>,
    kind: &'static str,
    span: Range<usize>,
    fields: &'a DeTable<'a>,
    known: RefCell<BTreeSet<String>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        document: &'a Document<'a>,
        kind: &'static str,
        span: Range<usize>,
        fields: &'a DeTable<'a>,
    ) -> Self {
        Self {
            document,
            kind,
            span,
            fields,
            known: RefCell::default(),
        }
    }

    /// Converts the table with `read`; every key that `read` leaves is a mistake.
    pub(super) fn read<T>(self, read: impl FnOnce(&Self) -> T) -> T {
        let value = read(&self);
        let known = self.known.borrow();
        for key in self.fields.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(name) {
                let text = unknown("key", name, known.iter().map(String::as_str));
                self.document.wrong(&key.span(), text);
            }
        }
        value
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.known.borrow_mut().insert(key.to_owned());
        let (key, value) = self.fields.get_key_value(key)?;
        Some(Value::new(self.document, key.get_ref(), value))
    }

    /// The value of a key that has to be there.
    pub fn required(&self, key: &str) -> Option<Value<'a>> {
        let value = self.get(key);
        if value.is_none() {
            self.wrong(format!("the {} has no {key}", self.kind));
        }
        value
    }

    /// A switch that is off unless the file says otherwise.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(|value| value.boolean()).unwrap_or(false)
    }

    /// Converts the table of this name (`[….name]`) with `read`, if it exists.
    pub fn table<T>(&self, name: &'static str, read: impl FnOnce(&Table<'a>) -> T) -> Option<T> {
        let value = self.get(name)?;
        let DeValue::Table(fields) = value.as_toml() else {
            value.wrong(format!("{name} has to be a table"));
            return None;
        };
        Some(Table::new(self.document, name, value.span(), fields).read(read))
    }

    /// Converts each table of a list (`[[name]]`) of at most `max` with `read`; empty without a list.
    pub fn tables<T>(
        &self,
        name: &'static str,
        max: usize,
        mut read: impl FnMut(&Table<'a>) -> Option<T>,
    ) -> Vec<T> {
        let Some(list) = self.get(name) else {
            return Vec::new();
        };
        let DeValue::Array(tables) = list.as_toml() else {
            list.wrong(format!("{name}s have to be a list of tables: write [[{name}]]"));
            return Vec::new();
        };
        if tables.len() > max {
            let text = format!("there are {} {name}s; at most {max} are taken", tables.len());
            self.wrong(text);
        }
        let mut all = Vec::new();
        for table in tables.iter() {
            if let DeValue::Table(fields) = table.get_ref() {
                all.extend(Table::new(self.document, name, table.span(), fields).read(&mut read));
            } else {
                let text = format!("a {name} has to be a table: write [[{name}]]");
                self.document.wrong(&table.span(), text);
            }
        }
        all
    }

    /// Records a mistake of the table as a whole, at its first line.
    pub fn wrong(&self, text: impl Into<String>) {
        self.document.wrong(&self.span, text);
    }

    /// Its first line, counted from 1.
    pub fn line(&self) -> usize {
        self.document.line(&self.span)
    }
}
