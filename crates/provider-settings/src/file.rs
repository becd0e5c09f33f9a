//! Reads the file of several providers: `default = "ID"` and a `[[provider]]` table for each.
//!
//! Invariants: every mistake is named at once, with its line; a provider's settings are validated by the very rules of the
//! plain variables; secrets are named by their files and never written into this one. Deliberately absent: settings
//! shared by all tables, since a secret that goes to every provider is a secret of none.

mod table;

use std::collections::BTreeSet;
use std::path::Path;

use chassis::settings::Reader;
use chassis::settings::toml_file::{self, FileMistake, FileMistakes, Value};

use crate::providers::{ConfiguredProvider, ConfiguredProviders};
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
        match named {
            _ if tables == 0 => file.wrong("there is no provider: write a [[provider]] table for each"),
            None if tables > 1 => file.wrong(
                "default is required: the id of the provider that is taken when nothing names another",
            ),
            _ => {}
        }
        let named = named.and_then(|value| Some((value.string()?, value)));
        ConfiguredProviders {
            default: named.map_or(0, |(id, value)| default(&id, value, &all, &selectors)),
            all,
            listed: true,
        }
    })
}

/// Which provider applies when nothing names another.
fn default(id: &str, value: Value<'_>, all: &[ConfiguredProvider], selectors: &ProviderSelectors) -> usize {
    // The table that is meant may have mistakes of its own.
    if !selectors.0.contains(&("id", id.to_owned())) {
        value.wrong(format!("default {id:?} is the id of no provider here"));
    }
    let at = all.iter().position(|provider| provider.id == id);
    at.unwrap_or_default()
}

/// What selects a provider, over all tables, by what it is.
#[derive(Default)]
struct ProviderSelectors(BTreeSet<(&'static str, String)>);

impl ProviderSelectors {
    /// Adds one. Nothing that selects a provider may select two of them.
    fn add(&mut self, kind: &'static str, text: &str, value: Value<'_>) {
        if self.0.insert((kind, text.to_owned())) {
            return;
        }
        let why = if kind == "issuer_url" {
            "two providers can never share an issuer, which is what tells their answers and sessions apart"
        } else {
            "it has to name one provider"
        };
        value.wrong(format!("{kind} {text:?} is there twice: {why}"));
    }
}
