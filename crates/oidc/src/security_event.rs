//! What a security event token says has happened (RFC 8417 section 1.2: the event payload; CAEP 1.0 section 2).
//!
//! What is optional and malformed counts as absent: it explains an event, and is not the event. What it says of people is in no
//! `Debug` output.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use url::Url;

use crate::json::seconds;
use crate::{SECURITY_EVENT_TYPES, SecurityEventError, SecurityEventKind};

/// Longest type of an event in bytes.
const MAX_EVENT_TYPE_BYTES: usize = 512;
/// Most names of one event.
const MAX_EVENTS: usize = 8;
/// Most languages of a message that are kept.
const MAX_LANGUAGES: usize = 16;
/// Longest language tag in bytes (RFC 5646 section 4.4.1).
const MAX_LANGUAGE_BYTES: usize = 35;
/// Most characters of a message that are kept.
const MAX_MESSAGE_CHARS: usize = 500;
/// The language of a message that does not say in which it is (RFC 5646 section 4.1).
const UNDETERMINED: &str = "und";

/// What has happened, and what is said about it (RFC 8417 section 1.2 and CAEP 1.0 section 2).
#[derive(Clone, PartialEq)]
pub struct SecurityEvent {
    /// The URI of its type.
    pub event_type: String,
    /// What it says of itself.
    pub kind: SecurityEventKind,
    /// When it was, in seconds since the Unix epoch; `None` where it is not told.
    pub timestamp: Option<u64>,
    /// What has set it off; `None` where it is not told, or not in the words of CAEP.
    pub initiating_entity: Option<InitiatingEntity>,
    /// Why, for those who read logs, by language (RFC 5646); without control characters, and cut.
    pub reason_admin: BTreeMap<String, String>,
    /// Why, for the person, likewise.
    pub reason_user: BTreeMap<String, String>,
}

/// What has set an event off (CAEP 1.0 section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitiatingEntity {
    /// Somebody who administers.
    Admin,
    /// The person.
    User,
    /// A policy.
    Policy,
    /// A system or a platform.
    System,
}

impl SecurityEvent {
    /// The one event there is. Further names of it that are not known here are passed over, since an event may only have names
    /// that mean the same (SSF 1.0 section 4.2.1); two that are known mean two events.
    ///
    /// # Errors
    /// `events` holds none, or more than one, or one that lacks what its definition requires.
    pub(crate) fn of(events: Option<&Value>) -> Result<Self, SecurityEventError> {
        let events = events.and_then(Value::as_object);
        let events = events.filter(|events| (1..=MAX_EVENTS).contains(&events.len()));
        let events = events.ok_or(SecurityEventError::Events)?;
        let is_event = |(event_type, payload): (&String, &Value)| is_uri(event_type) && payload.is_object();
        if !events.iter().all(is_event) {
            return Err(SecurityEventError::Events);
        }
        let mut known = events.iter().filter(|(event_type, _)| is_known(event_type));
        let (one, another) = (known.next(), known.next());
        if another.is_some() {
            return Err(SecurityEventError::Events);
        }
        let event = one.or_else(|| events.iter().next());
        let (event_type, payload) = event.ok_or(SecurityEventError::Events)?;
        let payload = payload.as_object().ok_or(SecurityEventError::Events)?;
        let initiating_entity = payload.get("initiating_entity").and_then(Value::as_str);
        Ok(Self {
            kind: SecurityEventKind::of(event_type, payload)?,
            event_type: event_type.clone(),
            timestamp: payload.get("event_timestamp").and_then(seconds),
            initiating_entity: initiating_entity.and_then(InitiatingEntity::of),
            reason_admin: messages(payload.get("reason_admin")),
            reason_user: messages(payload.get("reason_user")),
        })
    }

    /// A short name of its type that stays, for logs and metrics: the last part of the URI of a known type, `other` for all
    /// others.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let known = SECURITY_EVENT_TYPES.into_iter();
        let known = known.filter(|known| *known == self.event_type);
        known
            .filter_map(|known| known.rsplit('/').next())
            .next()
            .unwrap_or("other")
    }

    /// Whether it is about the stream it comes on.
    pub(crate) fn is_about_stream(&self) -> bool {
        matches!(
            self.kind,
            SecurityEventKind::Verification { .. } | SecurityEventKind::StreamUpdated { .. }
        )
    }
}

impl InitiatingEntity {
    fn of(text: &str) -> Option<Self> {
        Some(match text {
            "admin" => Self::Admin,
            "user" => Self::User,
            "policy" => Self::Policy,
            "system" => Self::System,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Policy => "policy",
            Self::System => "system",
        }
    }
}

impl fmt::Debug for SecurityEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityEvent")
            .field("event_type", &self.event_type)
            .finish_non_exhaustive()
    }
}

/// Whether an event may have this type (RFC 8417 section 1.2).
fn is_uri(event_type: &str) -> bool {
    event_type.len() <= MAX_EVENT_TYPE_BYTES
        && event_type.bytes().all(|byte| byte.is_ascii_graphic())
        && Url::parse(event_type).is_ok()
}

fn is_known(event_type: &str) -> bool {
    SECURITY_EVENT_TYPES.contains(&event_type)
}

/// A message by language (CAEP 1.0 section 2). What is no message in a language is passed over; a bare text is one in a language
/// that is not told, as transmitters of earlier drafts send it.
fn messages(value: Option<&Value>) -> BTreeMap<String, String> {
    let is_language = |tag: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=MAX_LANGUAGE_BYTES).contains(&tag.len()) && tag.bytes().all(is_part)
    };
    let message = |(tag, text): (&str, &Value)| {
        let text = text.as_str().filter(|text| !text.is_empty())?;
        let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
        let text = text.chars().take(MAX_MESSAGE_CHARS).map(shown).collect();
        is_language(tag).then(|| (tag.to_owned(), text))
    };
    match value {
        Some(Value::Object(all)) => {
            let all = all.iter().map(|(tag, text)| (tag.as_str(), text));
            all.filter_map(message).take(MAX_LANGUAGES).collect()
        }
        Some(bare) => message((UNDETERMINED, bare)).into_iter().collect(),
        None => BTreeMap::new(),
    }
}

#[cfg(test)]
#[path = "security_event_tests.rs"]
mod tests;
