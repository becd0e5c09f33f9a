//! What is said of a session (CAEP 1.0), and how the person and the session are named (RFC 9493, SSF 1.0 section 3.3).
//!
//! Invariant: a receiver learns no more of a person than the format its file entry asks for.

use serde_json::{Map, Value, json};

use super::receiver::SubjectFormat;
use crate::session::{Cause, Session};

/// Longest email address that names anybody (RFC 5321, section 4.5.3.1).
const EMAIL_BYTES_MAX: usize = 254;

/// Person and session: the session by the provider's `sid` where it has one, which others who have signed the person in know too.
pub(super) fn subject(format: SubjectFormat, session: &Session, by_handle: bool) -> Value {
    let handle = session.handle.to_string();
    let sid = session.provider_sid.as_deref().filter(|_| !by_handle);
    let mut members = Map::new();
    members.insert("format".to_owned(), json!("complex"));
    members.insert(
        "session".to_owned(),
        json!({"format": "opaque", "id": sid.unwrap_or(&handle)}),
    );
    let user = match format {
        SubjectFormat::IssSub => {
            Some(json!({"format": "iss_sub", "iss": session.issuer, "sub": session.subject}))
        }
        SubjectFormat::Opaque => Some(json!({"format": "opaque", "id": session.subject})),
        SubjectFormat::Email => email(session).map(|email| json!({"format": "email", "email": email})),
    };
    members.extend(user.map(|user| ("user".to_owned(), user)));
    Value::Object(members)
}

fn email(session: &Session) -> Option<String> {
    let email = session.user.verified_email()?;
    let (local, domain) = email.rsplit_once('@')?;
    let is_address = !local.is_empty() && !domain.is_empty() && email.len() <= EMAIL_BYTES_MAX;
    is_address.then_some(email)
}

/// A session ended.
pub(super) fn revoked(cause: Cause, now_ms: u64) -> Value {
    json!({
        "event_timestamp": now_ms / 1000,
        "initiating_entity": initiating_entity(cause),
        "reason_admin": {"en": cause.name()},
    })
}

/// A session began.
pub(super) fn established(session: &Session) -> Value {
    let mut claims = json!({
        "event_timestamp": session.created_at_ms / 1000,
        "initiating_entity": "user",
    });
    if let Some(acr) = text(session, "acr") {
        claims["acr"] = json!(acr);
    }
    if let Some(amr @ Value::Array(_)) = claim(session, "amr") {
        claims["amr"] = amr;
    }
    claims
}

/// A session was used.
pub(super) fn presented(now_ms: u64) -> Value {
    json!({"event_timestamp": now_ms / 1000, "initiating_entity": "user"})
}

/// The person of a session signed in anew at another level of assurance; `None` where it is the same or not known. The levels are
/// those of the provider, and so is their namespace (CAEP 1.0, section 3.4.1).
pub(super) fn level_change(old: &Session, new: &Session, now_ms: u64) -> Option<Value> {
    if (&old.issuer, &old.subject) != (&new.issuer, &new.subject) {
        return None;
    }
    let (before, now) = (text(old, "acr"), text(new, "acr")?);
    if before.as_ref() == Some(&now) {
        return None;
    }
    let mut claims = json!({
        "event_timestamp": now_ms / 1000,
        "initiating_entity": "user",
        "namespace": new.issuer,
        "current_level": now,
    });
    if let Some(before) = before {
        claims["previous_level"] = json!(before);
    }
    Some(claims)
}

/// Who brought it about (CAEP 1.0, section 2): `system` where a program of ours or the provider's did.
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

fn claim(session: &Session, name: &str) -> Option<Value> {
    let members = session.user.members().ok()?;
    serde_json::from_str(members.get(name)?.get()).ok()
}

fn text(session: &Session, name: &str) -> Option<String> {
    match claim(session, name)? {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}
