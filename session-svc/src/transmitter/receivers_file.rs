//! Reads the file of those who are told.
//!
//! ```toml
//! issuer = "https://sessions.example"
//! signing_key_file = "/run/secrets/signals.pem"
//!
//! [[receiver]]
//! id = "files"
//! audience = "https://files.example"
//! token_file = "/run/secrets/files-token"
//! delivery = "push"
//! url = "https://files.example/signals"
//! ```
//!
//! Invariant: every mistake is named at once, with its line; a file with a mistake is no file at all.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use chassis::files;
use chassis::secret::{Secret, split_list};
use chassis::settings::toml_file::{self, FileMistakes, Table, Value};
use oidc::{SecurityEventPush, SecurityEventSigner, endpoint_is_secure};
use url::Url;

use super::delivery::QUEUED_MAX;
use super::push::PUSH_TIMEOUT;
use super::receiver::{Delivery, EventType, Receiver, Receivers, SubjectFormat};

/// The most receivers of one file: each has a task, a lease and notes of its own.
const MAX_RECEIVERS: usize = 100;

/// Longest id: a label of metrics.
const ID_BYTES_MAX: usize = 32;

/// Shortest token of a receiver, beyond guessing.
const TOKEN_BYTES_MIN: usize = 16;

/// Reads the file.
///
/// # Errors
/// Every mistake, in the order of the file.
pub fn parse(text: &str) -> Result<Receivers, FileMistakes> {
    let receivers = toml_file::parse(text, |file| {
        let issuer = file.required("issuer").and_then(issuer);
        let signer = file.required("signing_key_file").and_then(signer);
        let mut seen = Seen::default();
        let mut tables = 0;
        let all = file.tables("receiver", MAX_RECEIVERS, |table| {
            tables += 1;
            receiver(table, &mut seen).map(Arc::new)
        });
        if tables == 0 {
            file.wrong(
                "there is no receiver: write a [[receiver]] table for each, or leave SESSION_RECEIVERS unset",
            );
        }
        Some(Receivers {
            issuer: issuer?,
            signer: signer?,
            all,
            queued_max: QUEUED_MAX,
        })
    })?;
    receivers.ok_or_else(|| FileMistakes::of_file("the file cannot be used"))
}

/// What no two receivers have in common.
#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    tokens: Vec<Secret<String>>,
}

fn receiver(table: &Table<'_>, seen: &mut Seen) -> Option<Receiver> {
    let id = table.required("id").and_then(id);
    if let Some(id) = &id
        && !seen.ids.insert(id.clone())
    {
        table.wrong(format!(
            "the id \"{id}\" is there twice: its stream is named by it"
        ));
    }
    let audience = table.required("audience").and_then(Value::string);
    let tokens = table.required("token_file").and_then(|value| {
        let tokens = tokens(value)?;
        if tokens.iter().any(|token| seen.tokens.contains(token)) {
            value.wrong("another receiver has the same token: each sees its own stream alone");
        }
        seen.tokens.extend(tokens.iter().cloned());
        Some(tokens)
    });
    let delivery = delivery(table);
    let events = match table.get("events") {
        None => Some(vec![EventType::SessionRevoked]),
        Some(value) => events(value),
    };
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
    let id = id?;
    Some(Receiver {
        stream_id: Receiver::stream_id(&id),
        id,
        audience: audience?,
        delivery: delivery?,
        events: events?,
        subject: subject?,
        providers: providers?,
        tokens: tokens?,
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

/// One token, or several while one takes the place of another.
fn tokens(value: Value<'_>) -> Option<Vec<Secret<String>>> {
    let tokens = split_list(&file(value)?);
    let fits =
        |token: &str| token.len() >= TOKEN_BYTES_MIN && token.bytes().all(|byte| byte.is_ascii_graphic());
    if tokens.is_empty() || !tokens.iter().all(|token| fits(token.expose())) {
        value.wrong(format!(
            "token_file has to hold a token of at least {TOKEN_BYTES_MIN} visible characters: make one with `openssl rand -hex 32`"
        ));
        return None;
    }
    Some(tokens)
}

#[derive(Clone, Copy)]
enum Way {
    Push,
    Poll,
}

fn delivery(table: &Table<'_>) -> Option<Delivery> {
    let way = table
        .required("delivery")
        .and_then(|value| value.one_of(&[("push", Way::Push), ("poll", Way::Poll)]));
    let url = table.get("url");
    let authorization = table.get("authorization_file");
    let ca_file = table.get("ca_file");
    match way? {
        Way::Poll => {
            for value in [url, authorization, ca_file].into_iter().flatten() {
                value.wrong("is for delivery = \"push\": who polls comes to us");
            }
            Some(Delivery::Poll)
        }
        Way::Push => {
            let Some(url) = url else {
                table.wrong("the receiver has no url: events are pushed there");
                return None;
            };
            let ca = ca_file.map(|value| (value, value.string()));
            let target = secure_url(url)?;
            let path = ca.as_ref().and_then(|(_, path)| path.clone()).map(PathBuf::from);
            let push = SecurityEventPush::new(target, path, PUSH_TIMEOUT)
                .map_err(|error| {
                    let value = ca.as_ref().map_or(url, |(value, _)| *value);
                    value.wrong(format!("{error}"));
                })
                .ok()?;
            let Some(value) = authorization else {
                return Some(Delivery::Push(push));
            };
            let push = push.authorized(file(value)?.trim());
            push.map_err(|error| value.wrong(format!("authorization_file {error}")))
                .ok()
                .map(Delivery::Push)
        }
    }
}

fn events(value: Value<'_>) -> Option<Vec<EventType>> {
    let Some(members) = value.as_list() else {
        value.wrong("events has to be a list such as [\"session-revoked\"]");
        return None;
    };
    let words = EventType::ALL.map(|event| (event.name(), event));
    let mut events = Vec::new();
    for member in members {
        let Some(event) = member.one_of(&words) else {
            continue;
        };
        if events.contains(&event) {
            member.wrong(format!("\"{}\" is there twice", event.name()));
        }
        events.push(event);
    }
    Some(events)
}

#[cfg(test)]
#[path = "receivers_file_tests.rs"]
mod tests;
