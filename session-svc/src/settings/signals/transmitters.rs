//! Reads the trusted transmitters of the file of signals.
//!
//! ```toml
//! [[transmitter]]
//! id = "idp"
//! issuer = "https://id.example.com"
//! audience = "https://login.example.com/signals"
//!
//! [policy]
//! credential-change = "end"
//! ```
//!
//! Invariants: every mistake is reported at once, with its line. The file names files with secrets, never secrets.

use std::collections::BTreeSet;
use std::path::PathBuf;

use chassis::secret::{Reloading, Secret};
use chassis::settings::toml_file::{Table, Value};
use ssf::TransmitterSettings;

use super::fields::{file, id, issuer, url};
use crate::receiver::{ConfiguredTransmitter, EventPolicy, TransmittersFile, parse_header};

/// The most transmitters of one file: the service caches the keys of each.
const MAX_TRANSMITTERS: usize = 100;

/// Reads the transmitters of the file and what their events do; `None` if the file has neither.
pub(super) fn read(file: &Table<'_>) -> Option<TransmittersFile> {
    let (mut ids, mut issuers, mut headers) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut tables = 0;
    let transmitters = file.tables("transmitter", MAX_TRANSMITTERS, |table| {
        tables += 1;
        let one = transmitter(table)?;
        if !ids.insert(one.id.clone()) {
            table.wrong(format!(
                "id {:?} appears twice: it has to name one transmitter",
                one.id
            ));
        }
        if !issuers.insert(one.settings.issuer.clone()) {
            table.wrong(format!(
                "issuer {:?} appears twice: it identifies a transmitter's events",
                one.settings.issuer
            ));
        }
        if let (true, Some((path, _))) = (one.has_global_token_revocation, &one.authorization)
            && !headers.insert(path.clone())
        {
            table.wrong(
                "authorization_file appears twice with global_token_revocation: it has to identify one transmitter",
            );
        }
        Some(one)
    });
    let policy = file.table("policy", EventPolicy::read);
    if tables == 0 {
        if policy.is_some() {
            file.wrong("there is no transmitter: add a [[transmitter]] table for each");
        }
        return None;
    }
    Some(TransmittersFile {
        transmitters,
        policy: policy.unwrap_or_default(),
    })
}

fn transmitter(table: &Table<'_>) -> Option<ConfiguredTransmitter> {
    let id = table.required("id").and_then(id);
    let issuer = table.required("issuer").and_then(issuer);
    let configuration_url = table.get("configuration_url").and_then(url);
    let audience = table.required("audience").and_then(texts);
    let provider = table.get("provider").and_then(Value::string);
    let authorization = table.get("authorization_file").and_then(authorization);
    let ca_file = table.get("ca_file").and_then(file);
    // By default, an email address that the provider has verified identifies the user.
    let by_email = table.get("email").and_then(Value::boolean).unwrap_or(true);
    let drafts = table.flag("drafts");
    let has_global_token_revocation = table.flag("global_token_revocation");
    let policy = table.table("policy", EventPolicy::read).unwrap_or_default();
    let issuer = issuer?;
    let settings = TransmitterSettings {
        configuration_url,
        ca_file: ca_file.map(|(path, _)| path),
        drafts,
        ..TransmitterSettings::new(issuer.clone())
    };
    Some(ConfiguredTransmitter {
        id: id?,
        settings,
        audience: audience?,
        provider: provider.unwrap_or(issuer),
        by_email,
        policy,
        has_global_token_revocation,
        authorization,
    })
}

/// One text, or a list of texts.
fn texts(value: Value<'_>) -> Option<Vec<String>> {
    match value.as_list() {
        Some(_) => value.strings(),
        None => value.string().map(|text| vec![text]),
    }
}

/// The value of the Authorization header, and its file.
fn authorization(value: Value<'_>) -> Option<(PathBuf, Reloading<Secret<String>>)> {
    let (path, text) = file(value)?;
    match parse_header(&text) {
        Ok(header) => Some((path, Reloading::new(header))),
        Err(error) => {
            value.wrong(format!("{}: {error}", path.display()));
            None
        }
    }
}

#[cfg(test)]
#[path = "transmitters_tests.rs"]
mod tests;
