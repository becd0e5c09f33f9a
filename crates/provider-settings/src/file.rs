//! Reads the file of several providers: `default = "ID"` and a `[[provider]]` table for each.
//!
//! Invariants: every mistake is named at once, with its line; a provider's settings are judged by the very rules of the
//! plain variables; secrets are named by their files and never written into this one. Deliberately absent: settings
//! shared by all tables, since a secret that goes to every provider is a secret of none.

mod table;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use chassis::files;
use chassis::settings::Reader;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::providers::Providers;
use crate::table::PROVIDERS;

/// The most providers of one file: a callback and a cache of keys is kept for each.
const MAX_PROVIDERS: usize = 100;

/// Reads the file; its mistakes are mistakes of the setting.
pub(crate) fn read(reader: &mut Reader<'_>, path: &Path) -> Option<Providers> {
    let shown = path.display();
    let text = match files::read_bounded(path).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            reader.wrong(PROVIDERS, format!("the file {shown} is not UTF-8 text"));
            return None;
        }
        Err(error) => {
            reader.wrong(PROVIDERS, format!("the file {shown} cannot be read: {error}"));
            return None;
        }
    };
    let (providers, mut said) = parse(&text);
    said.mistakes.sort_by_key(|(line, _)| *line);
    let whole = said.mistakes.is_empty();
    for (line, mistake) in said.mistakes {
        reader.wrong(PROVIDERS, format!("{shown}, line {line}: {mistake}"));
    }
    for (line, warning) in said.warnings {
        reader.warn(PROVIDERS, format!("{shown}, line {line}: {warning}"));
    }
    providers.filter(|_| whole)
}

/// Mistakes and warnings, each with its line, counted from 1.
#[derive(Default)]
struct Said {
    mistakes: Vec<(usize, String)>,
    warnings: Vec<(usize, String)>,
}

fn parse(text: &str) -> (Option<Providers>, Said) {
    let mut reading = Reading {
        text,
        said: Said::default(),
        names: Vec::new(),
    };
    let (document, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        reading.wrong(&error.span().unwrap_or_default(), error.message());
    }
    let providers = if reading.said.mistakes.is_empty() {
        reading.document(document.get_ref())
    } else {
        None
    };
    (providers, reading.said)
}

type Value<'t> = Spanned<DeValue<'t>>;

struct Reading<'t> {
    text: &'t str,
    said: Said,
    /// Whatever picks a provider, over all tables.
    names: Vec<Name>,
}

/// Something that picks a provider.
struct Name {
    kind: &'static str,
    text: String,
    span: Range<usize>,
}

impl Reading<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn wrong(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let line = self.line(span);
        self.said.mistakes.push((line, text.into()));
    }

    fn document(&mut self, document: &DeTable<'_>) -> Option<Providers> {
        let mut all = Vec::new();
        let (mut tables_there, mut default) = (0, None);
        for (key, value) in document {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("provider", DeValue::Array(tables)) => {
                    tables_there = tables.len();
                    for table in tables {
                        if let DeValue::Table(fields) = table.get_ref() {
                            all.extend(self.provider(&table.span(), fields));
                        } else {
                            self.wrong(&table.span(), "a provider has to be a table: write [[provider]]");
                        }
                    }
                }
                ("provider", _) => self.wrong(
                    &key.span(),
                    "providers have to be a list of tables: write [[provider]]",
                ),
                ("default", _) => default = self.string(value).map(|id| (value.span(), id)),
                (other, _) => self.wrong(
                    &key.span(),
                    format!("unknown key {other:?}: the file holds default and [[provider]] tables alone"),
                ),
            }
        }
        if tables_there == 0 {
            self.wrong(
                &(0..0),
                "there is no provider: write a [[provider]] table for each",
            );
        } else if tables_there > MAX_PROVIDERS {
            let text = format!("there are {tables_there} providers; at most {MAX_PROVIDERS} are taken");
            self.wrong(&(0..0), text);
        }
        self.unique();
        let at = self.default(tables_there, default)?;
        Some(Providers {
            default: at,
            all,
            listed: true,
        })
    }

    /// Which table is taken when nothing names another.
    fn default(&mut self, tables_there: usize, named: Option<(Range<usize>, String)>) -> Option<usize> {
        let ids = || self.names.iter().filter(|name| name.kind == "id");
        match named {
            Some((span, id)) => {
                let at = ids().position(|name| name.text == id);
                // An id that could not be read may be the one that is meant.
                if at.is_none() && ids().count() == tables_there {
                    self.wrong(&span, format!("default {id:?} is the id of no provider here"));
                }
                at
            }
            None if tables_there > 1 => {
                self.wrong(
                    &(0..0),
                    "default is required: the id of the provider that is taken when nothing names another",
                );
                None
            }
            None => Some(0),
        }
    }

    fn name(&mut self, kind: &'static str, text: &str, span: Range<usize>) {
        let text = text.to_owned();
        self.names.push(Name { kind, text, span });
    }

    /// Nothing that picks a provider may pick two of them.
    fn unique(&mut self) {
        let names = std::mem::take(&mut self.names);
        let mut seen = BTreeSet::new();
        for name in &names {
            if seen.insert((name.kind, &name.text)) {
                continue;
            }
            let why = if name.kind == "issuer_url" {
                "two providers can never share an issuer, which is what tells their answers and sessions apart"
            } else {
                "it has to name one provider"
            };
            self.wrong(
                &name.span,
                format!("{} {:?} is there twice: {why}", name.kind, name.text),
            );
        }
        self.names = names;
    }
}
