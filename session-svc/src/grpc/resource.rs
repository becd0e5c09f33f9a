//! Converts sessions and changes to messages.
//!
//! Invariant: no token becomes part of a session's message.

use session_proto::timestamp::from_ms;
use session_proto::v1;
use session_proto::v1::session::State as WireState;
use session_proto::v1::session_event::Kind as WireKind;

use crate::session::claims::SUBJECT;
use crate::session::{Claims, CookieGeneration, Device, Lifetime, Session};
use crate::session_store::ListedSession;
use crate::session_store::ending_notes::EndingNote;
use crate::sessions::WatchUpdate;

/// The message of a session.
pub(super) fn session(session: &Session, lifetime: &Lifetime) -> v1::Session {
    let state = if session.needs_sign_in {
        WireState::NeedsSignIn
    } else {
        WireState::Active
    };
    v1::Session {
        handle: session.handle.to_string(),
        issuer: session.issuer.clone(),
        subject: session.subject.clone(),
        user: session.user.text().to_owned(),
        attributes: session.attributes.text().to_owned(),
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
        device_binding: session.binding.as_ref().map(|binding| v1::DeviceBinding {
            jwk: binding.key.text().to_owned(),
            bound_at: Some(from_ms(binding.bound_at_ms)),
        }),
        cookie_generation: session.cookie_generation.as_ref().map(cookie_generation),
        theft_at: session.theft_at_ms.map(from_ms),
        operator_notice: session.operator_notice.as_ref().map(|notice| v1::OperatorNotice {
            at: Some(from_ms(notice.at_ms)),
            text: notice.text.clone(),
        }),
        sign_in_demand: session.sign_in_demand.as_ref().map(|demand| v1::SignInDemand {
            since: Some(from_ms(demand.since_ms)),
            acr: demand.acr.clone().unwrap_or_default(),
        }),
    }
}

/// The message of a session on a user's page.
pub(super) fn listed(shown: &ListedSession, issuer: &str, subject: &str, lifetime: &Lifetime) -> v1::Session {
    if let ListedSession::Session(readable) = shown {
        return session(readable, lifetime);
    }
    v1::Session {
        handle: shown.handle().to_string(),
        issuer: issuer.to_owned(),
        subject: subject.to_owned(),
        created_at: Some(from_ms(shown.created_at_ms())),
        state: WireState::Unreadable.into(),
        ..Default::default()
    }
}

/// The message of a session that an operator finds: with no fact about tokens or keys, and of the claims only
/// `sub` and those named.
pub(super) fn found(
    found: &ListedSession,
    issuer: &str,
    claims: &[String],
    lifetime: &Lifetime,
) -> v1::Session {
    let full = listed(found, issuer, "", lifetime);
    let user = found.session().map(|session| {
        let mut members = session.user.members().unwrap_or_default();
        members.retain(|name, _| name == SUBJECT || claims.contains(name));
        Claims::of_members(members).unwrap_or_default()
    });
    v1::Session {
        user: user.unwrap_or_default().text().to_owned(),
        attributes: Claims::default().text().to_owned(),
        scope: String::new(),
        access_token_expires_at: None,
        has_refresh_token: false,
        device_binding: full.device_binding.map(|binding| v1::DeviceBinding {
            jwk: String::new(),
            ..binding
        }),
        cookie_generation: None,
        ..full
    }
}

/// The message of an ending.
pub(super) fn ending(note: EndingNote) -> v1::list_endings_response::Ending {
    v1::list_endings_response::Ending {
        handle: note.handle().map(|handle| handle.to_string()).unwrap_or_default(),
        at: Some(from_ms(note.at_ms)),
        cause: note.cause() as i32,
        last_seen_on: Some(device(&note.last_seen_on)),
        operator: note.operator,
        purpose: note.purpose,
    }
}

pub(super) fn event(update: WatchUpdate, at_ms: u64, resume_token: String) -> v1::SessionEvent {
    match update {
        WatchUpdate::Heartbeat(interval) => v1::SessionEvent {
            heartbeat_interval: prost_types::Duration::try_from(interval).ok(),
            ..about_none(WireKind::Heartbeat, at_ms, resume_token)
        },
        WatchUpdate::Missed => about_none(WireKind::Missed, at_ms, resume_token),
        WatchUpdate::Change(change) => v1::SessionEvent {
            kind: change.kind as i32,
            handle: change.handle.to_string(),
            issuer: change.issuer,
            subject: change.subject,
            at: Some(from_ms(at_ms)),
            cause: change.cause.map_or(0, |cause| cause as i32),
            resume_token,
            ..Default::default()
        },
    }
}

/// The answer to the question how far a watch has come.
pub(super) fn answer(number: u64, at_ms: u64, resume_token: String) -> v1::SessionEvent {
    v1::SessionEvent {
        number,
        ..about_none(WireKind::Heartbeat, at_ms, resume_token)
    }
}

/// An event without a session.
fn about_none(kind: WireKind, at_ms: u64, resume_token: String) -> v1::SessionEvent {
    v1::SessionEvent {
        kind: kind.into(),
        at: Some(from_ms(at_ms)),
        resume_token,
        ..Default::default()
    }
}

/// The message of a cookie's generation.
pub fn cookie_generation(generation: &CookieGeneration) -> v1::CookieGeneration {
    v1::CookieGeneration {
        id: generation.id.clone(),
        parent: generation.parent.clone(),
        since: Some(from_ms(generation.since_ms)),
        settled: generation.settled,
    }
}

fn device(device: &Device) -> v1::Device {
    v1::Device {
        user_agent: device.user_agent.clone(),
        address: device.address.clone(),
        at: Some(from_ms(device.at_ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Cause;
    use crate::session::change::ChangeKind;

    #[test]
    fn causes_and_kinds_of_changes_have_the_numbers_of_the_protocol() {
        for cause in Cause::ALL {
            let name = v1::Cause::try_from(*cause as i32).unwrap().as_str_name();
            assert_eq!(name, format!("CAUSE_{}", cause.name().to_uppercase()));
        }
        for (kind, wire) in [
            (ChangeKind::Created, WireKind::Created),
            (ChangeKind::Rolled, WireKind::Rolled),
            (ChangeKind::Refreshed, WireKind::Refreshed),
            (ChangeKind::Changed, WireKind::Changed),
            (ChangeKind::Ended, WireKind::Ended),
        ] {
            assert_eq!(kind as i32, i32::from(wire));
        }
    }
}
