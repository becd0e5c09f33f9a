//! Reads the receivers of the file of signals.
//!
//! ```toml
//! issuer = "https://sessions.example"
//! signing_key_file = "/run/secrets/signals.pem"
//!
//! [[receiver]]
//! id = "files"
//! audience = "https://files.example"
//! url = "https://files.example/signals"
//! ```
//!
//! Invariant: every mistake is named at once, with its line; a file with a mistake is no file at all.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use chassis::settings::toml_file::{Table, Value};
use ssf::{SecurityEventPush, SecurityEventSigner};

use super::fields::{file, id, issuer, url};
use crate::transmitter::{PUSH_TIMEOUT, QUEUED_MAX, Receiver, Receivers, SubjectFormat};

/// The most receivers of one file: each has a task, a lease and notes of its own.
const MAX_RECEIVERS: usize = 100;

/// Reads the receivers of the file and what their events are signed with; none if it has neither.
pub(super) fn read(file: &Table<'_>) -> Option<Receivers> {
    let mut ids = HashSet::new();
    let mut tables = 0;
    let all = file.tables("receiver", MAX_RECEIVERS, |table| {
        tables += 1;
        receiver(table, &mut ids).map(Arc::new)
    });
    if tables == 0 {
        if file.get("issuer").or(file.get("signing_key_file")).is_some() {
            file.wrong("there is no receiver: write a [[receiver]] table for each");
        }
        return None;
    }
    let issuer = file.required("issuer").and_then(issuer);
    let signer = file.required("signing_key_file").and_then(signer);
    Some(Receivers {
        issuer: issuer?,
        signer: signer?,
        all,
        queued_max: QUEUED_MAX,
    })
}

fn receiver(table: &Table<'_>, ids: &mut HashSet<String>) -> Option<Receiver> {
    let id = table.required("id").and_then(id);
    if let Some(id) = &id
        && !ids.insert(id.clone())
    {
        table.wrong(format!(
            "the id \"{id}\" is there twice: its notes are named by it"
        ));
    }
    let audience = table.required("audience").and_then(Value::string);
    let push = push(table);
    let subject = match table.get("subject") {
        None => Some(SubjectFormat::IssSub),
        Some(value) => value.one_of(&[
            ("iss_sub", SubjectFormat::IssSub),
            ("opaque", SubjectFormat::Opaque),
            ("email", SubjectFormat::Email),
        ]),
    };
    let providers = match table.get("providers") {
        None => Some(Vec::new()),
        Some(value) => value.strings(),
    };
    Some(Receiver {
        id: id?,
        audience: audience?,
        push: push?,
        subject: subject?,
        providers: providers?,
    })
}

fn signer(value: Value<'_>) -> Option<SecurityEventSigner> {
    SecurityEventSigner::from_pem(&file(value)?.1)
        .map_err(|error| value.wrong(format!("signing_key_file {error}")))
        .ok()
}

fn push(table: &Table<'_>) -> Option<SecurityEventPush> {
    let address = table.required("url");
    let authorization = table.get("authorization_file");
    let ca = table.get("ca_file").map(|value| (value, value.string()));
    let address = address?;
    let target = url(address)?;
    let path = ca.as_ref().and_then(|(_, path)| path.clone()).map(PathBuf::from);
    let push = SecurityEventPush::new(target, path.as_deref(), PUSH_TIMEOUT)
        .map_err(|error| {
            let value = ca.as_ref().map_or(address, |(value, _)| *value);
            value.wrong(format!("{error}"));
        })
        .ok()?;
    let Some(value) = authorization else {
        return Some(push);
    };
    let push = push.authorized(file(value)?.1.trim());
    push.map_err(|error| value.wrong(format!("authorization_file {error}")))
        .ok()
}

#[cfg(test)]
#[path = "receivers_tests.rs"]
mod tests;
