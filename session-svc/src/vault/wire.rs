//! How a session is written down inside its sealed text: protobuf messages of our own, never sent anywhere.
//!
//! Invariants
//! - Field numbers are never used for something else; a field that is new is optional, and belongs to the session's own
//!   message with the next number, so that replicas of two releases read each other's sessions during a rollout.
//! - What a newer release added is carried along and written back as it came; the messages inside are closed.
//!
//! Deliberately absent: the handle and the version, which the record's name and version say already.

use std::collections::BTreeMap;

use bytes::Bytes;
use chassis::secret::Secret;
use prost::Message;

use super::SealError;
use super::id_claims::AroundClaims;
use super::subject;
use super::unknown::fields_above;
use crate::session::change::{ChangeKind, SessionChange};
use crate::session::{
    Cause, Claims, CookieGeneration, Device, DeviceBinding, Handle, Name, Session, SessionState,
    SessionTokens, SignInDemand,
};

/// The last field of [`KeptSession`] this release knows.
const LAST_FIELD: u64 = 21;

#[derive(Clone, PartialEq, Message)]
struct KeptSession {
    #[prost(string, tag = "1")]
    issuer: String,
    #[prost(string, tag = "2")]
    subject: String,
    /// JSON, as `subject` writes it.
    #[prost(string, tag = "3")]
    user: String,
    /// JSON.
    #[prost(string, tag = "4")]
    attributes: String,
    #[prost(message, required, tag = "5")]
    tokens: SessionTokens,
    /// Instead of the ID token of `tokens`.
    #[prost(message, optional, tag = "6")]
    id_token_around_claims: Option<AroundClaims>,
    #[prost(string, optional, tag = "7")]
    provider_sid: Option<String>,
    #[prost(string, repeated, tag = "8")]
    earlier_sids: Vec<String>,
    #[prost(uint64, optional, tag = "9")]
    authenticated_at_ms: Option<u64>,
    #[prost(uint64, tag = "10")]
    created_at_ms: u64,
    #[prost(uint64, tag = "11")]
    rolled_at_ms: u64,
    #[prost(uint64, optional, tag = "12")]
    not_after_ms: Option<u64>,
    #[prost(message, required, tag = "13")]
    created_on: Device,
    /// None if browser and address are those the session was created on.
    #[prost(message, optional, tag = "14")]
    last_seen_on: Option<Device>,
    #[prost(uint64, tag = "15")]
    last_seen_at_ms: u64,
    #[prost(bool, tag = "16")]
    needs_sign_in: bool,
    #[prost(message, optional, tag = "17")]
    binding: Option<DeviceBinding>,
    #[prost(message, optional, tag = "18")]
    cookie_generation: Option<CookieGeneration>,
    #[prost(uint64, optional, tag = "19")]
    theft_at_ms: Option<u64>,
    #[prost(message, optional, tag = "20")]
    sign_in_demand: Option<SignInDemand>,
    /// Names of claims that security events have told, and when.
    #[prost(btree_map = "string, uint64", tag = "21")]
    claims_told: BTreeMap<String, u64>,
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
    let user = subject::without(session.user.text(), &session.subject);
    let mut tokens = session.tokens.clone();
    let id_token = tokens.id_token.as_ref();
    let around_claims = id_token.and_then(|token| AroundClaims::of(token.parts(), &user));
    if around_claims.is_some() {
        tokens.id_token = None;
    }
    let (created_on, last_seen_on) = (&session.created_on, &session.last_seen_on);
    let is_as_created =
        (&last_seen_on.user_agent, &last_seen_on.address) == (&created_on.user_agent, &created_on.address);
    let kept = KeptSession {
        issuer: session.issuer.clone(),
        subject: session.subject.clone(),
        user,
        attributes: session.attributes.text().to_owned(),
        tokens,
        id_token_around_claims: around_claims,
        provider_sid: session.provider_sid.clone(),
        earlier_sids: session.earlier_sids.clone(),
        authenticated_at_ms: session.authenticated_at_ms,
        created_at_ms: session.created_at_ms,
        rolled_at_ms: session.rolled_at_ms,
        not_after_ms: session.not_after_ms,
        created_on: created_on.clone(),
        last_seen_on: (!is_as_created).then(|| last_seen_on.clone()),
        last_seen_at_ms: last_seen_on.at_ms,
        needs_sign_in: session.state == SessionState::NeedsSignIn,
        binding: session.binding.clone(),
        cookie_generation: session.cookie_generation.clone(),
        theft_at_ms: session.theft_at_ms,
        sign_in_demand: session.sign_in_demand.clone(),
        claims_told: session.claims_told.clone(),
    };
    let mut bytes = kept.encode_to_vec();
    bytes.extend_from_slice(session.carried.expose());
    bytes
}

pub(super) fn session_from_bytes(name: Name, version: u64, bytes: Bytes) -> Result<Session, SealError> {
    let carried = fields_above(LAST_FIELD, &bytes).ok_or(SealError::NotReadable)?;
    let mut kept = KeptSession::decode(bytes).map_err(malformed)?;
    if let Some(around) = kept.id_token_around_claims {
        kept.tokens.id_token = around.with(&kept.user);
    }
    let last_seen_on = kept.last_seen_on.unwrap_or_else(|| kept.created_on.clone());
    Ok(Session {
        handle: name,
        user: Claims::of_kept(subject::with(kept.user, &kept.subject)),
        attributes: Claims::of_kept(kept.attributes),
        issuer: kept.issuer,
        subject: kept.subject,
        tokens: kept.tokens,
        provider_sid: kept.provider_sid,
        earlier_sids: kept.earlier_sids,
        authenticated_at_ms: kept.authenticated_at_ms,
        created_at_ms: kept.created_at_ms,
        rolled_at_ms: kept.rolled_at_ms,
        not_after_ms: kept.not_after_ms,
        created_on: kept.created_on,
        last_seen_on: Device {
            at_ms: kept.last_seen_at_ms,
            ..last_seen_on
        },
        binding: kept.binding,
        cookie_generation: kept.cookie_generation,
        theft_at_ms: kept.theft_at_ms,
        sign_in_demand: kept.sign_in_demand,
        claims_told: kept.claims_told,
        state: if kept.needs_sign_in {
            SessionState::NeedsSignIn
        } else {
            SessionState::Active
        },
        version,
        carried: Secret::new(carried),
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
