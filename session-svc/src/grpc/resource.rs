//! Sessions and changes as messages.
//!
//! Invariant: no token ever becomes part of a session's message.

use chassis::address;
use session_proto::timestamp::from_ms;
use session_proto::v1::session::State as WireState;
use session_proto::v1::session_event::Kind as WireKind;
use session_proto::{claims, v1};

use crate::keeper::{SealError, Shown};
use crate::session::change::Kind;
use crate::session::claims::SUBJECT;
use crate::session::{Claims, Device, Lifetime, Session, State};
use crate::sessions::{SessionsError, WatchUpdate};

/// The message of a session; `Unreadable` if the claims kept with it are none.
pub(super) fn session(session: &Session, lifetime: &Lifetime) -> Result<v1::Session, SessionsError> {
    let state = match session.state {
        State::Active => WireState::Active,
        State::NeedsSignIn => WireState::NeedsSignIn,
    };
    Ok(v1::Session {
        handle: session.handle.text(),
        issuer: session.issuer.clone(),
        subject: session.subject.clone(),
        user: Some(told(&session.user)?),
        attributes: Some(told(&session.attributes)?),
        scope: session.tokens.scope.text(),
        access_token_expires_at: session
            .tokens
            .access
            .as_ref()
            .map(|access| from_ms(access.expires_at_ms)),
        has_refresh_token: session.tokens.refresh.is_some(),
        provider_sid: session.provider_sid.clone().unwrap_or_default(),
        authenticated_at: session.authenticated_at_ms.map(from_ms),
        created_at: Some(from_ms(session.created_at_ms)),
        rolled_at: Some(from_ms(session.rolled_at_ms)),
        expires_at: Some(from_ms(session.expires_at_ms(lifetime))),
        absolute_expires_at: Some(from_ms(session.absolute_expires_at_ms(lifetime))),
        created_on: Some(device(&session.created_on)),
        last_seen_on: Some(device(&session.last_seen_on)),
        state: state.into(),
        version: session.version,
        current: false,
    })
}

/// The message of a session on the page of a person.
pub(super) fn listed(shown: &Shown, issuer: &str, subject: &str, lifetime: &Lifetime) -> v1::Session {
    if let Shown::Session(readable) = shown {
        match session(readable, lifetime) {
            Ok(message) => return message,
            Err(error) => {
                tracing::error!(session = %readable.handle, %error, "a listed record cannot be read")
            }
        }
    }
    v1::Session {
        handle: shown.handle().text(),
        issuer: issuer.to_owned(),
        subject: subject.to_owned(),
        created_at: Some(from_ms(shown.created_at_ms())),
        state: WireState::Unreadable.into(),
        ..Default::default()
    }
}

fn told(claims: &Claims) -> Result<claims::Claims, SessionsError> {
    let unread = |error| SessionsError::Unreadable(SealError::Malformed(Box::new(error)));
    let Some(text) = claims.text() else {
        let object = claims.object().map_err(unread)?;
        return Ok(claims::to_struct(&object));
    };
    let json: &[u8] = if text.json.is_empty() { b"{}" } else { &text.json };
    let subject = text.subject.as_deref().map(|subject| (SUBJECT, subject));
    claims::from_json(json, subject).map_err(unread)
}

pub(super) fn event(told: WatchUpdate, at_ms: u64, resume_token: String) -> v1::SessionEvent {
    let at = Some(from_ms(at_ms));
    let silent = |kind: WireKind, resume_token| v1::SessionEvent {
        kind: kind.into(),
        at,
        resume_token,
        ..Default::default()
    };
    match told {
        WatchUpdate::Heartbeat => silent(WireKind::Heartbeat, resume_token),
        WatchUpdate::Missed => silent(WireKind::Missed, resume_token),
        WatchUpdate::Change(change) => {
            let kind = match change.kind {
                Kind::Created => WireKind::Created,
                Kind::Rolled => WireKind::Rolled,
                Kind::Refreshed => WireKind::Refreshed,
                Kind::Changed => WireKind::Changed,
                Kind::Ended => WireKind::Ended,
            };
            v1::SessionEvent {
                kind: kind.into(),
                handle: change.handle.to_string(),
                issuer: change.issuer,
                subject: change.subject,
                at,
                cause: change.cause,
                resume_token,
                number: 0,
            }
        }
    }
}

fn device(device: &Device) -> v1::Device {
    v1::Device {
        user_agent: device.user_agent.clone(),
        address: device.address.map(address::text).unwrap_or_default(),
        at: Some(from_ms(device.at_ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::claims::{Object, Text};

    fn kept(json: &'static str, subject: Option<&str>) -> Claims {
        Claims::of_text(Text {
            json: json.as_bytes().into(),
            subject: subject.map(str::to_owned),
        })
    }

    #[test]
    fn claims_that_nobody_read_are_told_as_those_that_somebody_did() {
        for (json, subject) in [
            ("", None),
            ("", Some("ada")),
            (r#"{"name":"Ada","zone":["x",{"b":1,"a":null}]}"#, Some("ada")),
            (r#"{"zone":"x","name":"Ada"}"#, Some("ada")),
            (r#"{"name":"Ada"}"#, None),
        ] {
            let unread = kept(json, subject);
            let object: Object = unread.object().unwrap().into_owned();
            assert_eq!(told(&unread).unwrap(), claims::to_struct(&object), "{json}");
            assert_eq!(told(&object.into()).unwrap(), told(&unread).unwrap(), "{json}");
        }
    }

    #[test]
    fn claims_that_are_none_fail_the_call() {
        for json in ["[]", "{", "null", "{} {}"] {
            let told = told(&kept(json, Some("ada")));
            assert!(matches!(told, Err(SessionsError::Unreadable(_))), "{json}");
        }
    }
}
