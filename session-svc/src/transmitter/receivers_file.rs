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

use chassis::files;
use chassis::settings::toml_file::{Table, Value};
use oidc::endpoint_is_secure;
use ssf::{SecurityEventPush, SecurityEventSigner};
use url::Url;

use super::delivery::{PUSH_TIMEOUT, QUEUED_MAX};
use super::receiver::{Receiver, Receivers, SubjectFormat};

/// The most receivers of one file: each has a task, a lease and notes of its own.
const MAX_RECEIVERS: usize = 100;

/// Longest id: a label of metrics.
const ID_BYTES_MAX: usize = 32;

/// Reads the receivers of the file and what their events are signed with; none if it has neither.
pub(crate) fn read(file: &Table<'_>) -> Option<Receivers> {
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

fn id(value: Value<'_>) -> Option<String> {
    let id = value.string()?;
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if id.len() > ID_BYTES_MAX || !id.bytes().all(fits) {
        value.wrong(format!(
            "id {id:?} has to be of a-z, 0-9 and \"-\", at most {ID_BYTES_MAX} of them"
        ));
        return None;
    }
    Some(id)
}

/// A URL under https, or http on this machine.
fn secure_url(value: Value<'_>) -> Option<Url> {
    let text = value.string()?;
    match Url::parse(&text) {
        Ok(url) if endpoint_is_secure(&url) => Some(url),
        Ok(_) => {
            value.wrong("has to be under https, or under http on this machine");
            None
        }
        Err(_) => {
            value.wrong(format!("{text:?} is no URL"));
            None
        }
    }
}

/// An issuer is compared byte by byte (SSF 1.0, section 7.1): it is kept as it is written.
fn issuer(value: Value<'_>) -> Option<String> {
    let url = secure_url(value)?;
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        value.wrong("an issuer has neither query nor fragment nor user");
        return None;
    }
    value.string()
}

fn file(value: Value<'_>) -> Option<String> {
    let path = PathBuf::from(value.string()?);
    let shown = path.display();
    let text = match files::read_bounded(&path) {
        Ok(bytes) => String::from_utf8(bytes).ok(),
        Err(error) => {
            value.wrong(format!("the file {shown} cannot be read: {error}"));
            return None;
        }
    };
    if text.is_none() {
        value.wrong(format!("the file {shown} is not UTF-8 text"));
    }
    text
}

fn signer(value: Value<'_>) -> Option<SecurityEventSigner> {
    SecurityEventSigner::from_pem(&file(value)?)
        .map_err(|error| value.wrong(format!("signing_key_file {error}")))
        .ok()
}

fn push(table: &Table<'_>) -> Option<SecurityEventPush> {
    let url = table.required("url");
    let authorization = table.get("authorization_file");
    let ca = table.get("ca_file").map(|value| (value, value.string()));
    let url = url?;
    let target = secure_url(url)?;
    let path = ca.as_ref().and_then(|(_, path)| path.clone()).map(PathBuf::from);
    let push = SecurityEventPush::new(target, path.as_deref(), PUSH_TIMEOUT)
        .map_err(|error| {
            let value = ca.as_ref().map_or(url, |(value, _)| *value);
            value.wrong(format!("{error}"));
        })
        .ok()?;
    let Some(value) = authorization else {
        return Some(push);
    };
    let push = push.authorized(file(value)?.trim());
    push.map_err(|error| value.wrong(format!("authorization_file {error}")))
        .ok()
}

#[cfg(test)]
#[path = "receivers_file_tests.rs"]
mod tests;
