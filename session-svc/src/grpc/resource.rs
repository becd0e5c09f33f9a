//! Sessions and changes as messages.
//!
//! Invariant: no token ever becomes part of a session's message.

use session_proto::timestamp::from_ms;
use session_proto::v1::session::State as WireState;
use session_proto::v1::session_event::Kind as WireKind;
use session_proto::{claims, v1};

use crate::session::change::Kind;
use crate::session::{Device, Lifetime, Session, State};
use crate::sessions::Told;

pub(super) fn session(session: &Session, lifetime: &Lifetime) -> v1::Session {
    let state = match session.state {
        State::Active => WireState::Active,
        State::NeedsSignIn => WireState::NeedsSignIn,
    };
    v1::Session {
        handle: session.handle.to_string(),
        issuer: session.issuer.clone(),
        subject: session.subject.clone(),
        user: Some(claims::to_struct(&session.user)),
        attributes: Some(claims::to_struct(&session.attributes)),
        scope: session.tokens.scope.text(),
        access_token_expires_at: session
            .tokens
            .access
            .as_ref()
            .map(|access| from_ms(access.expires_at_ms)),
        has_refresh_token: session.tokens.refresh.is_some(),
        provider_sid: session.provider_sid.clone().unwrap_or_default(),
        authenticated_at: Some(from_ms(session.authenticated_at_ms)),
        created_at: Some(from_ms(session.created_at_ms)),
        rolled_at: Some(from_ms(session.rolled_at_ms)),
        expires_at: Some(from_ms(session.expires_at_ms(lifetime))),
        absolute_expires_at: Some(from_ms(session.absolute_expires_at_ms(lifetime))),
        created_on: Some(device(&session.created_on)),
        last_seen_on: Some(device(&session.last_seen_on)),
        state: state.into(),
        version: session.version,
        current: false,
    }
}

pub(super) fn event(told: Told, at_ms: u64, resume_token: String) -> v1::SessionEvent {
    let at = Some(from_ms(at_ms));
    let silent = |kind: WireKind, resume_token| v1::SessionEvent {
        kind: kind.into(),
        at,
        resume_token,
        ..Default::default()
    };
    match told {
        Told::Heartbeat => silent(WireKind::Heartbeat, resume_token),
        Told::Missed => silent(WireKind::Missed, resume_token),
        Told::Change(change) => {
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
            }
        }
    }
}

fn device(device: &Device) -> v1::Device {
    v1::Device {
        user_agent: device.user_agent.clone(),
        address: device
            .address
            .map(|address| address.to_string())
            .unwrap_or_default(),
        at: Some(from_ms(device.at_ms)),
    }
}
