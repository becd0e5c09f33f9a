//! The event of a token (RFC 8417 section 1.2): events of CAEP 1.0 (section 3), RISC 1.0 (section 2) and
//! streams (SSF 1.0 sections 8.1.4.1 and 8.1.5).
//!
//! An event of an unknown type is accepted and noted. An event of a known type must have all required
//! members. Malformed optional members count as absent: they do not prevent the effect of the event.

use std::fmt;

use oidc::numeric_date;
use serde_json::{Map, Value};
use url::Url;

use crate::SecurityEventError;

/// Longest type of an event in bytes.
const MAX_EVENT_TYPE_BYTES: usize = 512;
/// Most members of `events`: names of one event.
const MAX_EVENTS: usize = 8;
/// Longest text of an event in bytes.
const MAX_TEXT_BYTES: usize = 1_024;
/// Most characters of a message that are kept.
const MAX_MESSAGE_CHARS: usize = 500;

const CAEP: &str = "https://schemas.openid.net/secevent/caep/event-type/";
const RISC: &str = "https://schemas.openid.net/secevent/risc/event-type/";
const SSF: &str = "https://schemas.openid.net/secevent/ssf/event-type/";

const CHANGES: &[&str] = &["create", "revoke", "update", "delete"];
const COMPLIANCE: &[&str] = &["compliant", "not-compliant"];
const RISK_LEVELS: &[&str] = &["LOW", "MEDIUM", "HIGH"];
const STATUSES: &[&str] = &["enabled", "paused", "disabled"];

/// A member that an event requires, and its type.
#[derive(Clone, Copy)]
enum Required {
    Text(&'static str),
    Object(&'static str),
    OneOf(&'static str, &'static [&'static str]),
}

use Required::{Object, OneOf, Text};

/// The known types of events, each with what it requires.
static EVENT_TYPES: [(&str, &str, &[Required]); 24] = [
    (CAEP, "session-revoked", &[]),
    (CAEP, "token-claims-change", &[Object("claims")]),
    (
        CAEP,
        "credential-change",
        &[Text("credential_type"), OneOf("change_type", CHANGES)],
    ),
    (
        CAEP,
        "assurance-level-change",
        &[Text("namespace"), Text("current_level")],
    ),
    (
        CAEP,
        "device-compliance-change",
        &[
            OneOf("previous_status", COMPLIANCE),
            OneOf("current_status", COMPLIANCE),
        ],
    ),
    (CAEP, "session-established", &[]),
    (CAEP, "session-presented", &[]),
    (
        CAEP,
        "risk-level-change",
        &[Text("principal"), OneOf("current_level", RISK_LEVELS)],
    ),
    (RISC, "account-credential-change-required", &[]),
    (RISC, "account-purged", &[]),
    (RISC, "account-disabled", &[]),
    (RISC, "account-enabled", &[]),
    (RISC, "identifier-changed", &[]),
    (RISC, "identifier-recycled", &[]),
    (RISC, "credential-compromise", &[Text("credential_type")]),
    (RISC, "opt-in", &[]),
    (RISC, "opt-out-initiated", &[]),
    (RISC, "opt-out-cancelled", &[]),
    (RISC, "opt-out-effective", &[]),
    (RISC, "recovery-activated", &[]),
    (RISC, "recovery-information-changed", &[]),
    (RISC, "sessions-revoked", &[]),
    (SSF, "verification", &[]),
    (SSF, "stream-updated", &[OneOf("status", STATUSES)]),
];

/// An event, and what its transmitter says about it (CAEP 1.0 section 2).
#[derive(Clone, PartialEq)]
pub struct SecurityEvent {
    /// The last part of the type's URI, for logs and metrics; `other` for an unknown type.
    pub name: &'static str,
    /// The event's name in a policy: `name`, or a finer one for some payloads, such as `risk-level-high`.
    pub policy_row: &'static str,
    /// The new values of changed claims; empty for all events but `token-claims-change`.
    pub claims: Map<String, Value>,
    /// What happened to the stream; `None` for an event about a user, a session or a device.
    pub stream: Option<StreamEvent>,
    /// The time of the event, in seconds since the Unix epoch.
    pub timestamp: Option<u64>,
    /// The initiator: `admin`, `user`, `policy` or `system`.
    pub initiating_entity: Option<&'static str>,
    /// The reason for administrators, in English if available; without control characters, truncated.
    pub reason: Option<String>,
}

/// A change of a stream.
#[derive(Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// The transmitter verified the stream. The field is the `state` of the verification request, if any.
    Verified(Option<String>),
    /// The transmitter changed the stream's status: status and reason.
    Updated(String, Option<String>),
}

impl SecurityEvent {
    /// Reads the one event. Unknown types next to a known one are ignored: they may be synonyms (SSF 1.0 section
    /// 4.2.1). Two known types are two events.
    ///
    /// # Errors
    /// `events` holds no event or more than one, or the event lacks a required member.
    pub(crate) fn of(events: Option<&Value>) -> Result<Self, SecurityEventError> {
        let wrong = || SecurityEventError::invalid("events", "does not hold one event");
        let events = events.and_then(Value::as_object);
        let events = events.filter(|events| (1..=MAX_EVENTS).contains(&events.len()));
        let events = events.ok_or_else(wrong)?;
        let mut known = None;
        for (uri, payload) in events {
            let payload = payload.as_object().filter(|_| is_uri(uri)).ok_or_else(wrong)?;
            let mut types = EVENT_TYPES.iter();
            let found = types.find(|(family, name, _)| uri.strip_prefix(family) == Some(*name));
            if let Some(found) = found
                && known.replace((found, payload)).is_some()
            {
                return Err(wrong());
            }
        }
        match (known, events.values().find_map(Value::as_object)) {
            (Some((event_type, payload)), _) => Self::read_known(event_type, payload),
            (None, Some(payload)) => Ok(Self::describe("other", payload)),
            (None, None) => Err(wrong()),
        }
    }

    fn read_known(
        (family, name, required): &(&str, &'static str, &[Required]),
        payload: &Map<String, Value>,
    ) -> Result<Self, SecurityEventError> {
        required.iter().try_for_each(|one| one.check(payload))?;
        let mut event = Self::describe(name, payload);
        if *family == SSF {
            event.stream = Some(stream_event(name, payload)?);
        }
        if let Some(claims) = payload
            .get("claims")
            .filter(|_| *name == "token-claims-change")
            .and_then(Value::as_object)
        {
            event.claims = claims.clone();
        }
        Ok(event)
    }

    fn describe(name: &'static str, payload: &Map<String, Value>) -> Self {
        let entity = text(payload, "initiating_entity");
        let entities = ["admin", "user", "policy", "system"];
        Self {
            name,
            policy_row: policy_row(name, payload),
            claims: Map::new(),
            stream: None,
            timestamp: payload.get("event_timestamp").and_then(numeric_date),
            initiating_entity: entities.into_iter().find(|known| entity == Some(known)),
            reason: payload.get("reason_admin").and_then(message),
        }
    }
}

impl Required {
    fn check(self, payload: &Map<String, Value>) -> Result<(), SecurityEventError> {
        let (member, is_there) = match self {
            Text(member) => (member, text(payload, member).is_some()),
            OneOf(member, words) => {
                let word = text(payload, member);
                (member, word.is_some_and(|word| words.contains(&word)))
            }
            Object(member) => {
                let members = payload.get(member).and_then(Value::as_object);
                (member, members.is_some_and(|members| !members.is_empty()))
            }
        };
        if is_there {
            Ok(())
        } else {
            Err(SecurityEventError::invalid(
                member,
                "is absent from the event, or malformed",
            ))
        }
    }
}

/// The name of an event in a policy. A change without a direction counts as a weakening.
fn policy_row(name: &'static str, payload: &Map<String, Value>) -> &'static str {
    match name {
        "credential-change" if text(payload, "change_type") == Some("create") => "credential-created",
        "assurance-level-change" if text(payload, "change_direction") == Some("increase") => {
            "assurance-level-increased"
        }
        "device-compliance-change" if text(payload, "current_status") == Some("compliant") => {
            "device-compliant"
        }
        "risk-level-change" if text(payload, "current_level") == Some("HIGH") => "risk-level-high",
        other => other,
    }
}

fn stream_event(name: &str, payload: &Map<String, Value>) -> Result<StreamEvent, SecurityEventError> {
    let owned = |member| text(payload, member).map(str::to_owned);
    if name == "stream-updated" {
        return Ok(StreamEvent::Updated(
            owned("status").unwrap_or_default(),
            owned("reason"),
        ));
    }
    // A malformed `state` must not count as absent: absent means that the receiver requested nothing.
    if payload.contains_key("state") {
        Text("state").check(payload)?;
    }
    Ok(StreamEvent::Verified(owned("state")))
}

/// A text of the payload; an empty, long or other value counts as absent.
fn text<'a>(payload: &'a Map<String, Value>, member: &str) -> Option<&'a str> {
    let text = payload.get(member)?.as_str()?;
    (!text.is_empty() && text.len() <= MAX_TEXT_BYTES).then_some(text)
}

/// A message by language (CAEP 1.0 section 2), or bare text as transmitters of earlier drafts send it.
fn message(value: &Value) -> Option<String> {
    let text = match value {
        Value::Object(by_language) => by_language
            .get("en")
            .and_then(Value::as_str)
            .or_else(|| by_language.values().find_map(Value::as_str))?,
        bare => bare.as_str()?,
    };
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    (!text.is_empty()).then(|| text.chars().take(MAX_MESSAGE_CHARS).map(printable).collect())
}

/// Whether an event may have this type (RFC 8417 section 1.2).
fn is_uri(event_type: &str) -> bool {
    event_type.len() <= MAX_EVENT_TYPE_BYTES
        && event_type.bytes().all(|byte| byte.is_ascii_graphic())
        && Url::parse(event_type).is_ok()
}

impl fmt::Debug for SecurityEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityEvent")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
