//! The form of a session inside its sealed text: our own protobuf messages, which are never sent.
//!
//! Invariants
//! - Field numbers are never reused. A new field is optional, and gets the next number of the session's own
//!   message. Replicas of two releases can thus read each other's sessions during a rollout.
//! - Fields that a newer release added are kept and written back unchanged. Inner messages get no new fields.
//!
//! Deliberately absent: the handle and the version, which the record's name and version already give.

use bytes::Bytes;
use chassis::secret::Secret;
use prost::Message;

use super::SealError;
use super::id_claims::AroundClaims;
use super::subject;
use super::unknown::fields_above;
use crate::session::change::{ChangeKind, SessionChange};
use crate::session::{Cause, Claims, Device, Handle, Name, Session, SessionValues};

/// The last field of a stored session that this release knows.
const LAST_FIELD: u32 = 22;

/// Fields of a stored session that replace repeated values. The fields of both structs form one message.
#[derive(Clone, PartialEq, Message)]
struct Unrepeated {
    /// Replaces the ID token of `tokens`.
    #[prost(message, optional, tag = "6")]
    id_token_around_claims: Option<AroundClaims>,
    /// Whether `last_seen_on` has the same browser and address as `created_on`.
    #[prost(bool, tag = "15")]
    is_seen_as_created: bool,
}

#[derive(Clone, PartialEq, Message)]
struct KeptChange {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(bytes = "vec", tag = "2")]
    handle: Vec<u8>,
    #[prost(string, tag = "3")]
    issuer: String,
    #[prost(string, tag = "4")]
    subject: String,
    #[prost(uint64, tag = "5")]
    at_ms: u64,
    #[prost(uint32, optional, tag = "6")]
    cause: Option<u32>,
}

pub(super) fn session_to_bytes(session: &Session) -> Vec<u8> {
    let mut values = session.values.clone();
    // The claims without a leading subject (`subject`).
    let user = subject::without(values.user.text(), &values.subject);
    let id_token = values.tokens.id_token.as_ref();
    let around_claims = id_token.and_then(|token| AroundClaims::of(token.parts(), &user));
    if around_claims.is_some() {
        values.tokens.id_token = None;
    }
    values.user = Claims::of_kept(user);
    let (created, seen) = (&values.created_on, &mut values.last_seen_on);
    let is_seen_as_created = (&seen.user_agent, &seen.address) == (&created.user_agent, &created.address);
    if is_seen_as_created {
        (seen.user_agent, seen.address) = Default::default();
    }
    let unrepeated = Unrepeated {
        id_token_around_claims: around_claims,
        is_seen_as_created,
    };
    let mut bytes = values.encode_to_vec();
    bytes.extend(unrepeated.encode_to_vec());
    bytes.extend_from_slice(session.carried.expose());
    bytes
}

pub(super) fn session_from_bytes(name: Name, version: u64, bytes: Bytes) -> Result<Session, SealError> {
    let carried = fields_above(LAST_FIELD, &bytes).map_err(malformed)?;
    let unrepeated = Unrepeated::decode(bytes.clone()).map_err(malformed)?;
    let mut values = SessionValues::decode(bytes).map_err(malformed)?;
    if let Some(around) = unrepeated.id_token_around_claims {
        values.tokens.id_token = around.with(values.user.text());
    }
    values.user = Claims::of_kept(subject::with(values.user.text(), &values.subject));
    if unrepeated.is_seen_as_created {
        values.last_seen_on = Device {
            at_ms: values.last_seen_on.at_ms,
            ..values.created_on.clone()
        };
    }
    Ok(Session {
        version,
        carried: Secret::new(carried),
        ..Session::new(name, values)
    })
}

pub(super) fn change_to_bytes(change: &SessionChange) -> Vec<u8> {
    let kept = KeptChange {
        kind: change.kind as u32,
        handle: change.handle.as_bytes().to_vec(),
        issuer: change.issuer.clone(),
        subject: change.subject.clone(),
        at_ms: change.at_ms,
        cause: change.cause.map(|cause| cause as u32),
    };
    kept.encode_to_vec()
}

pub(super) fn change_from_bytes(bytes: &[u8]) -> Result<SessionChange, SealError> {
    let kept = KeptChange::decode(bytes).map_err(malformed)?;
    let handle = kept
        .handle
        .as_slice()
        .try_into()
        .map_err(|_| SealError::NotReadable)?;
    Ok(SessionChange {
        kind: ChangeKind::of_number(kept.kind),
        handle: Handle::from_bytes(handle),
        issuer: kept.issuer,
        subject: kept.subject,
        at_ms: kept.at_ms,
        cause: kept.cause.map(Cause::of_number),
    })
}

fn malformed(cause: impl std::error::Error + Send + Sync + 'static) -> SealError {
    SealError::Malformed(Box::new(cause))
}
