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
//! Invariant: every mistake is reported at once, with its line. A file with a mistake is not used at all.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use chassis::settings::toml_file::{Table, Value};
use ssf::{SecurityEventPush, SecurityEventSigner};

use super::fields::{file, id, issuer, url};
use crate::transmitter::{PUSH_TIMEOUT, QUEUED_MAX, Receiver, Receivers, SubjectFormat};

/// The most receivers of one file: each has its own task, lease and records.
const MAX_RECEIVERS: usize = 100;

/// Reads the receivers of the file and the key that signs their events; `None` if the file has neither.
pub(super) fn read(file: &Table<'_>) -> Option<Receivers> {
    let mut ids = HashSet::new();
    let mut tables = 0;
    let all = file.tables("receiver", MAX_RECEIVERS, |table| {
        tables += 1;
        receiver(table, &mut ids).map(Arc::new)
    });
    if tables == 0 {
        if file.get("issuer").or(file.get("signing_key_file")).is_some() {
            file.wrong("there is no receiver: add a [[receiver]] table for each");
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
            "the id \"{id}\" appears twice: it names the stored records"
        ));
    }
    let audience = table.required("audience").and_then(Value::string);
    let push = push(table);
    let formats = [
        ("iss_sub", SubjectFormat::IssSub),
        ("opaque", SubjectFormat::Opaque),
        ("email", SubjectFormat::Email),
    ];
    let subject = table.get("subject").and_then(|value| value.one_of(&formats));
    let providers = table.get("providers").and_then(Value::strings);
    Some(Receiver {
        id: id?,
        audience: audience?,
        push: push?,
        subject: subject.unwrap_or(SubjectFormat::IssSub),
        providers: providers.unwrap_or_default(),
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
    let ca = table.get("ca_file");
    let path = ca.and_then(Value::string).map(PathBuf::from);
    let address = address?;
    let push = SecurityEventPush::new(url(address)?, path.as_deref(), PUSH_TIMEOUT)
        .map_err(|error| ca.unwrap_or(address).wrong(format!("{error}")))
        .ok()?;
    let Some(value) = authorization else {
        return Some(push);
    };
    let push = push.authorized(file(value)?.1.trim());
    if push.is_none() {
        value.wrong("authorization_file does not contain a valid header value");
    }
    push
}

#[cfg(test)]
#[path = "receivers_tests.rs"]
mod tests;
