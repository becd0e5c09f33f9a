//! Reads the file of several providers: `default = "ID"` and a `[[provider]]` table for each.
//!
//! Invariants: every mistake is reported at once, with its line. A provider's settings have the same rules as the
//! plain variables. The file names files with secrets, never secrets. Deliberately absent: settings that all
//! tables share, because a secret sent to every provider is not a secret.

mod table;

use std::collections::BTreeSet;
use std::path::Path;

use chassis::settings::Reader;
use chassis::settings::toml_file::{self, FileMistake, FileMistakes, Value};

use crate::providers::{ConfiguredProvider, ConfiguredProviders};
use crate::table::PROVIDERS;

/// The most providers of one file: each has a callback and a cache of keys.
const MAX_PROVIDERS: usize = 100;

/// Reads the file. Its mistakes are mistakes of the setting.
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
            _ if tables == 0 => file.wrong("there is no provider: add a [[provider]] table for each"),
            None if tables > 1 => {
                file.wrong("default is required: the id of the provider for sign-ins that name no other")
            }
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

/// The index of the provider for sign-ins that name no other.
fn default(id: &str, value: Value<'_>, all: &[ConfiguredProvider], selectors: &ProviderSelectors) -> usize {
    // The named table may itself have mistakes.
    if !selectors.0.contains(&("id", id.to_owned())) {
        value.wrong(format!("no provider in this file has the id of default, {id:?}"));
    }
    let at = all.iter().position(|provider| provider.id == id);
    at.unwrap_or_default()
}

/// Values that select a provider (such as its id or a host), of all tables, each with its kind.
#[derive(Default)]
struct ProviderSelectors(BTreeSet<(&'static str, String)>);

impl ProviderSelectors {
    /// Adds one. Each may select only one provider.
    fn add(&mut self, kind: &'static str, text: &str, value: Value<'_>) {
        if self.0.insert((kind, text.to_owned())) {
            return;
        }
        let why = if kind == "issuer_url" {
            "two providers cannot share an issuer, which identifies their answers and sessions"
        } else {
            "it has to name one provider"
        };
        value.wrong(format!("{kind} {text:?} appears twice: {why}"));
    }
}
