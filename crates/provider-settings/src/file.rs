//! Reads the file of several providers: `default = "ID"` and a `[[provider]]` table for each.
//!
//! Invariants: every mistake is named at once, with its line; a provider's settings are validated by the very rules of the
//! plain variables; secrets are named by their files and never written into this one. Deliberately absent: settings
//! shared by all tables, since a secret that goes to every provider is a secret of none.

mod table;

use std::collections::BTreeSet;
use std::path::Path;

use chassis::settings::Reader;
use chassis::settings::toml_file::{self, FileMistake, FileMistakes, Table, Value};

use crate::providers::ConfiguredProviders;
use crate::table::PROVIDERS;

/// The most providers of one file: a callback and a cache of keys is kept for each.
const MAX_PROVIDERS: usize = 100;

/// Reads the file; its mistakes are mistakes of the setting.
pub(crate) fn read(reader: &mut Reader<'_>, path: &Path) -> Option<ConfiguredProviders> {
    let mut warnings = Vec::new();
    let providers = reader.toml_file(PROVIDERS, path, |text| parse(text, &mut warnings));
    for warning in warnings {
        reader.warn(PROVIDERS, format!("{}, {warning}", path.display()));
    }
    providers
}

fn parse(text: &str, warnings: &mut Vec<FileMistake>) -> Result<ConfiguredProviders, FileMistakes> {
    toml_file::parse(text, |file| {
        let named = file.get("default");
        let (mut selectors, mut tables) = (ProviderSelectors::default(), 0);
        let all = file.tables("provider", MAX_PROVIDERS, |table| {
            tables += 1;
            table::provider(table, &mut selectors, warnings)
        });
        if tables == 0 {
            file.wrong("there is no provider: write a [[provider]] table for each");
        }
        selectors.validate();
        ConfiguredProviders {
            default: default(file, named, &selectors.ids(), tables),
            all,
            listed: true,
        }
    })
}

/// Which table applies when nothing names another.
fn default(file: &Table<'_>, named: Option<Value<'_>>, ids: &[&str], tables: usize) -> usize {
    if named.is_none() && tables > 1 {
        file.wrong("default is required: the id of the provider that is taken when nothing names another");
    }
    let Some((id, value)) = named.and_then(|value| Some((value.string()?, value))) else {
        return 0;
    };
    let at = ids.iter().position(|known| *known == id);
    // An id that could not be read may be the one that is meant.
    if at.is_none() && ids.len() == tables {
        value.wrong(format!("default {id:?} is the id of no provider here"));
    }
    at.unwrap_or_default()
}

/// What selects a provider, over all tables.
#[derive(Default)]
struct ProviderSelectors<'a>(Vec<(&'static str, String, Value<'a>)>);

impl<'a> ProviderSelectors<'a> {
    fn add(&mut self, kind: &'static str, text: &str, value: Value<'a>) {
        self.0.push((kind, text.to_owned(), value));
    }

    fn ids(&self) -> Vec<&str> {
        let ids = self.0.iter().filter(|(kind, ..)| *kind == "id");
        ids.map(|(_, text, _)| text.as_str()).collect()
    }

    /// Nothing that selects a provider may select two of them.
    fn validate(&self) {
        let mut seen = BTreeSet::new();
        for (kind, text, value) in &self.0 {
            if seen.insert((kind, text)) {
                continue;
            }
            let why = if *kind == "issuer_url" {
                "two providers can never share an issuer, which is what tells their answers and sessions apart"
            } else {
                "it has to name one provider"
            };
            value.wrong(format!("{kind} {text:?} is there twice: {why}"));
        }
    }
}
