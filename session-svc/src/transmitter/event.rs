//! The content of an event (CAEP 1.0), and the names of its user and session (RFC 9493, SSF 1.0 section 3.3).
//!
//! Invariant: a receiver learns no more of a user than the format its file entry asks for.

use serde_json::{Value, json};

use super::receiver::SubjectFormat;
use crate::session::{Cause, Session};

/// User and session. The session's name is the provider's `sid`, which other applications of that provider
/// also know, else our handle.
pub(super) fn subject(format: SubjectFormat, session: &Session, by_handle: bool) -> Value {
    let handle = session.handle.to_string();
    let sid = session.provider_sid.as_deref().filter(|_| !by_handle);
    let mut subject = json!({
        "format": "complex",
        "session": {"format": "opaque", "id": sid.unwrap_or(&handle)},
    });
    let user = match format {
        SubjectFormat::IssSub => {
            Some(json!({"format": "iss_sub", "iss": session.issuer, "sub": session.subject}))
        }
        SubjectFormat::Opaque => Some(json!({"format": "opaque", "id": session.subject})),
        SubjectFormat::Email => {
            let email = session.user.verified_email().filter(|email| email.contains('@'));
            email.map(|email| json!({"format": "email", "email": email}))
        }
    };
    if let Some(user) = user {
        subject["user"] = user;
    }
    subject
}

/// A session ended.
pub(super) fn revoked(cause: Cause, now_ms: u64) -> Value {
    json!({
        "event_timestamp": now_ms / 1000,
        "initiating_entity": initiating_entity(cause),
        "reason_admin": {"en": cause.name()},
    })
}

/// The initiator of an ending (CAEP 1.0, section 2): `system` for a program of ours or of the provider.
fn initiating_entity(cause: Cause) -> &'static str {
    match cause {
        Cause::Logout | Cause::OtherDevice | Cause::FrontChannelLogout | Cause::Replaced => "user",
        Cause::Operator => "admin",
        Cause::SessionLimit | Cause::Theft | Cause::SecurityEvent => "policy",
        Cause::BackChannelLogout
        | Cause::TokenMismatch
        | Cause::Abandoned
        | Cause::Refused
        | Cause::Other => "system",
    }
}
