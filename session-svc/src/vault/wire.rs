//! How a session is written down inside its sealed text: protobuf messages of our own, never sent anywhere.
//!
//! Invariants
//! - Field numbers are never used for something else; a field that is new is optional, and belongs to the session's own
//!   message with the next number, so that replicas of two releases read each other's sessions during a rollout.
//! - What a newer release added is carried along and written back as it came; the messages inside are closed.
//! - Times near the session's beginning are written as the distance to it, which takes fewer bytes.
//!
//! Deliberately absent: the handle and the version, which the record's name and version say already.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use chassis::secret::Secret;
use prost::Message;

use super::api_tokens::{KeptApiToken, api_tokens_of_kept, kept_api_tokens};
use super::id_claims::AroundClaims;
use super::jwt::KeptToken;
use super::subject;
use super::unknown::fields_above;
use crate::keeper::SealError;
use crate::session::change::{ChangeKind, SessionChange};
use crate::session::cookie_generation::{FIRST, GenerationId};
use crate::session::{
    AccessToken, Cause, Claims, CookieGeneration, Device, DeviceBinding, DeviceKey, Handle, Name,
    PendingAnswer, Scope, Session, SessionState, SessionTokens, SignInDemand, StoredToken,
};

/// The last field of [`KeptSession`] this release knows.
const LAST_FIELD: u64 = 32;

/// An unknown time of authentication, as it is written: the epoch, when nobody signed in. A release that does not know the
/// difference takes it for an authentication too old for every guard, and not for one of the session's beginning.
const UNKNOWN_MS: u64 = 0;

/// The usual token type, written as nothing.
const BEARER: &str = "Bearer";

#[derive(Clone, PartialEq, Message)]
struct KeptSession {
    #[prost(string, tag = "1")]
    issuer: String,
    #[prost(string, tag = "2")]
    subject: String,
    /// JSON, as `subject` writes it.
    #[prost(string, tag = "3")]
    user: String,
    /// JSON; empty for none.
    #[prost(string, tag = "4")]
    attributes: String,
    #[prost(message, optional, tag = "5")]
    access_token: Option<KeptToken>,
    /// Empty means Bearer.
    #[prost(string, tag = "6")]
    token_type: String,
    #[prost(sint64, tag = "7")]
    access_token_expires_after_ms: i64,
    #[prost(string, tag = "8")]
    scope: String,
    #[prost(message, optional, tag = "9")]
    refresh_token: Option<KeptToken>,
    #[prost(message, optional, tag = "10")]
    id_token: Option<KeptToken>,
    #[prost(uint64, tag = "11")]
    token_generation: u64,
    #[prost(string, optional, tag = "12")]
    provider_sid: Option<String>,
    /// The distance to the epoch if it is unknown.
    #[prost(sint64, tag = "13")]
    authenticated_after_ms: i64,
    #[prost(uint64, tag = "14")]
    created_at_ms: u64,
    #[prost(sint64, tag = "15")]
    rolled_after_ms: i64,
    #[prost(sint64, optional, tag = "16")]
    not_after_ms: Option<i64>,
    #[prost(message, optional, tag = "17")]
    created_on: Option<KeptDevice>,
    #[prost(message, optional, tag = "18")]
    last_seen_on: Option<KeptDevice>,
    #[prost(bool, tag = "19")]
    needs_sign_in: bool,
    #[prost(string, repeated, tag = "20")]
    earlier_sids: Vec<String>,
    #[prost(message, optional, tag = "21")]
    unjudged: Option<KeptAnswer>,
    #[prost(message, repeated, tag = "22")]
    api_tokens: Vec<KeptApiToken>,
    #[prost(uint64, tag = "23")]
    other_grants: u64,
    /// Instead of `id_token`, which counts where both are there: another release has written that since.
    #[prost(message, optional, tag = "24")]
    id_token_around_claims: Option<AroundClaims>,
    #[prost(message, optional, tag = "25")]
    binding: Option<KeptBinding>,
    #[prost(message, optional, tag = "26")]
    cookie_generation: Option<KeptGeneration>,
    #[prost(sint64, optional, tag = "27")]
    theft_after_ms: Option<i64>,
    #[prost(message, optional, tag = "28")]
    sign_in_demand: Option<KeptDemand>,
    /// Names of claims that security events have told, and when after the session's beginning.
    #[prost(btree_map = "string, sint64", tag = "30")]
    claims_told: BTreeMap<String, i64>,
    /// 0 for a long or unknown one.
    #[prost(uint64, tag = "31")]
    access_token_lifetime_secs: u64,
    #[prost(sint64, optional, tag = "32")]
    granted_after_ms: Option<i64>,
}

/// The lifetime of a token as it is written, in seconds; 0 for a long one.
pub(super) fn lifetime_to_kept(access: &AccessToken) -> u64 {
    match access.lifetime_ms {
        AccessToken::LONG => 0,
        lifetime_ms => lifetime_ms / 1_000,
    }
}

/// The lifetime that was written, in milliseconds.
pub(super) fn lifetime_from_kept(lifetime_secs: u64) -> u64 {
    match lifetime_secs {
        0 => AccessToken::LONG,
        secs => secs.saturating_mul(1_000),
    }
}

/// A sign-in that the person owes.
#[derive(Clone, PartialEq, Message)]
struct KeptDemand {
    #[prost(sint64, tag = "1")]
    since_after_ms: i64,
    /// Empty for any.
    #[prost(string, tag = "2")]
    acr: String,
}

/// The generation of the session's cookie that counts.
#[derive(Clone, PartialEq, Message)]
struct KeptGeneration {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    /// Empty for the first one.
    #[prost(bytes = "vec", tag = "2")]
    parent: Vec<u8>,
    #[prost(sint64, tag = "3")]
    since_after_ms: i64,
    #[prost(bool, tag = "4")]
    settled: bool,
}

/// The device a session is bound to.
#[derive(Clone, PartialEq, Message)]
struct KeptBinding {
    /// The public key, a JWK.
    #[prost(string, tag = "1")]
    jwk: String,
    #[prost(sint64, tag = "2")]
    bound_after_ms: i64,
}

/// A refresh whose ID token could not be judged.
#[derive(Clone, PartialEq, Message)]
struct KeptAnswer {
    #[prost(message, optional, tag = "1")]
    access_token: Option<KeptToken>,
    /// Empty means Bearer.
    #[prost(string, tag = "2")]
    token_type: String,
    #[prost(sint64, tag = "3")]
    access_token_expires_after_ms: i64,
    #[prost(string, optional, tag = "4")]
    scope: Option<String>,
    #[prost(message, optional, tag = "5")]
    id_token: Option<KeptToken>,
    #[prost(sint64, tag = "6")]
    answered_after_ms: i64,
    /// The generation of the tokens it was kept with. A release that does not know the field carries it through refreshes of
    /// its own, after which it is worth nothing.
    #[prost(uint64, tag = "7")]
    token_generation: u64,
}

#[derive(Clone, PartialEq, Message)]
struct KeptDevice {
    #[prost(string, tag = "1")]
    user_agent: String,
    /// 4 or 16 bytes; empty for unknown.
    #[prost(bytes = "vec", tag = "2")]
    address: Vec<u8>,
    #[prost(sint64, tag = "3")]
    seen_after_ms: i64,
    /// Browser and address are those the session was created on.
    #[prost(bool, tag = "4")]
    as_created: bool,
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
    #[prost(string, tag = "6")]
    cause: String,
}

pub(super) fn session_to_bytes(session: &Session) -> Vec<u8> {
    let since = |at_ms: u64| distance(session.created_at_ms, at_ms);
    let token = |token: &Option<StoredToken>| token.as_ref().map(KeptToken::from);
    let access = session.tokens.access.as_ref();
    let as_created = session.last_seen_on.user_agent == session.created_on.user_agent
        && session.last_seen_on.address == session.created_on.address;
    let last_seen_on = if as_created {
        KeptDevice {
            seen_after_ms: since(session.last_seen_on.at_ms),
            as_created,
            ..KeptDevice::default()
        }
    } else {
        device_to_kept(&session.last_seen_on, session.created_at_ms)
    };
    let user = subject::without(session.user.text(), &session.subject);
    let id_token = token(&session.tokens.id_token);
    let around_claims = id_token
        .as_ref()
        .and_then(|token| AroundClaims::of(token.parts(), &user));
    let kept = KeptSession {
        issuer: session.issuer.clone(),
        subject: session.subject.clone(),
        user,
        attributes: attributes_to_kept(&session.attributes),
        access_token: access.map(|access| KeptToken::from(&access.value)),
        token_type: access.map(type_to_kept).unwrap_or_default(),
        access_token_expires_after_ms: access
            .map(|access| since(access.expires_at_ms))
            .unwrap_or_default(),
        access_token_lifetime_secs: access.map(lifetime_to_kept).unwrap_or_default(),
        granted_after_ms: Some(session.tokens.granted_at_ms)
            .filter(|at_ms| *at_ms > 0)
            .map(since),
        scope: session.tokens.scope.text(),
        refresh_token: token(&session.tokens.refresh),
        id_token: id_token.filter(|_| around_claims.is_none()),
        id_token_around_claims: around_claims,
        token_generation: session.tokens.generation,
        provider_sid: session.provider_sid.clone(),
        authenticated_after_ms: since(session.authenticated_at_ms.unwrap_or(UNKNOWN_MS)),
        created_at_ms: session.created_at_ms,
        rolled_after_ms: since(session.rolled_at_ms),
        not_after_ms: session.not_after_ms.map(since),
        created_on: Some(device_to_kept(&session.created_on, session.created_at_ms)),
        last_seen_on: Some(last_seen_on),
        needs_sign_in: session.state == SessionState::NeedsSignIn,
        earlier_sids: session.earlier_sids.clone(),
        unjudged: pending_to_kept(&session.tokens, since),
        api_tokens: kept_api_tokens(&session.tokens.api, since),
        other_grants: session.tokens.other_grants,
        binding: session.binding.as_ref().map(|binding| KeptBinding {
            jwk: binding.key.text().to_owned(),
            bound_after_ms: since(binding.bound_at_ms),
        }),
        cookie_generation: session.cookie_generation.as_ref().map(|counts| KeptGeneration {
            id: counts.id.to_vec(),
            parent: if counts.parent == FIRST {
                Vec::new()
            } else {
                counts.parent.to_vec()
            },
            since_after_ms: since(counts.since_ms),
            settled: counts.settled,
        }),
        theft_after_ms: session.theft_at_ms.map(since),
        sign_in_demand: session.sign_in_demand.as_ref().map(|demand| KeptDemand {
            since_after_ms: since(demand.since_ms),
            acr: demand.acr.clone().unwrap_or_default(),
        }),
        claims_told: session
            .claims_told
            .iter()
            .map(|(name, at_ms)| (name.clone(), since(*at_ms)))
            .collect(),
    };
    let mut bytes = kept.encode_to_vec();
    bytes.extend_from_slice(session.carried.expose());
    bytes
}

pub(super) fn session_from_bytes(name: Name, version: u64, bytes: Bytes) -> Result<Session, SealError> {
    let carried = fields_above(LAST_FIELD, &bytes).ok_or(SealError::NotReadable)?;
    let kept = KeptSession::decode(bytes).map_err(malformed)?;
    let created_at_ms = kept.created_at_ms;
    let at = |after_ms: i64| created_at_ms.saturating_add_signed(after_ms);
    let access = kept.access_token.map(|token| AccessToken {
        value: token.into_token(),
        token_type: type_from_kept(kept.token_type),
        expires_at_ms: at(kept.access_token_expires_after_ms),
        lifetime_ms: lifetime_from_kept(kept.access_token_lifetime_secs),
    });
    let current = |answer: &KeptAnswer| answer.token_generation == kept.token_generation;
    let pending = kept.unjudged.filter(current);
    let tokens = SessionTokens {
        access,
        scope: Scope::of_text(kept.scope),
        refresh: kept.refresh_token.map(KeptToken::into_token),
        id_token: match (kept.id_token, kept.id_token_around_claims) {
            (Some(token), _) => Some(token.into_token()),
            (None, around) => around.and_then(|around| around.with(&kept.user)),
        },
        generation: kept.token_generation,
        pending: pending.and_then(|answer| pending_from_kept(answer, at)),
        api: api_tokens_of_kept(kept.api_tokens, at),
        other_grants: kept.other_grants,
        granted_at_ms: kept.granted_after_ms.map_or(0, at),
    };
    let created_on = device_from_kept(kept.created_on.unwrap_or_default(), created_at_ms);
    let last_seen_on = match kept.last_seen_on {
        None => created_on.clone(),
        Some(seen) if seen.as_created => Device {
            at_ms: at(seen.seen_after_ms),
            ..created_on.clone()
        },
        Some(seen) => device_from_kept(seen, created_at_ms),
    };
    Ok(Session {
        handle: Handle::of_record(name),
        user: Claims::of_kept(subject::with(kept.user, &kept.subject)),
        attributes: Claims::of_kept(kept.attributes),
        issuer: kept.issuer,
        subject: kept.subject,
        tokens,
        provider_sid: kept.provider_sid,
        earlier_sids: kept.earlier_sids,
        authenticated_at_ms: Some(at(kept.authenticated_after_ms)).filter(|at_ms| *at_ms != UNKNOWN_MS),
        created_at_ms,
        rolled_at_ms: at(kept.rolled_after_ms),
        not_after_ms: kept.not_after_ms.map(at),
        created_on,
        last_seen_on,
        binding: kept.binding.map(|binding| DeviceBinding {
            key: DeviceKey::of_kept(binding.jwk),
            bound_at_ms: at(binding.bound_after_ms),
        }),
        cookie_generation: kept.cookie_generation.map(|kept| CookieGeneration {
            id: generation_id(&kept.id),
            parent: generation_id(&kept.parent),
            since_ms: at(kept.since_after_ms),
            settled: kept.settled,
        }),
        theft_at_ms: kept.theft_after_ms.map(at),
        sign_in_demand: kept.sign_in_demand.map(|demand| SignInDemand {
            since_ms: at(demand.since_after_ms),
            acr: Some(demand.acr).filter(|acr| !acr.is_empty()),
        }),
        claims_told: kept
            .claims_told
            .into_iter()
            .map(|(name, told_after_ms)| (name, at(told_after_ms)))
            .collect(),
        state: if kept.needs_sign_in {
            SessionState::NeedsSignIn
        } else {
            SessionState::Active
        },
        version,
        carried: Secret::new(carried),
    })
}

fn pending_to_kept(tokens: &SessionTokens, since: impl Fn(u64) -> i64) -> Option<KeptAnswer> {
    let answer = tokens.pending.as_ref()?;
    Some(KeptAnswer {
        access_token: Some(KeptToken::from(&answer.access.value)),
        token_type: type_to_kept(&answer.access),
        access_token_expires_after_ms: since(answer.access.expires_at_ms),
        scope: answer.scope.as_ref().map(Scope::text),
        id_token: Some(KeptToken::from(&answer.id_token)),
        answered_after_ms: since(answer.answered_at_ms),
        token_generation: tokens.generation,
    })
}

fn pending_from_kept(answer: KeptAnswer, at: impl Fn(i64) -> u64) -> Option<Box<PendingAnswer>> {
    Some(Box::new(PendingAnswer {
        access: AccessToken {
            value: answer.access_token?.into_token(),
            token_type: type_from_kept(answer.token_type),
            expires_at_ms: at(answer.access_token_expires_after_ms),
            lifetime_ms: AccessToken::LONG,
        },
        scope: answer.scope.map(Scope::of_text),
        id_token: answer.id_token?.into_token(),
        answered_at_ms: at(answer.answered_after_ms),
    }))
}

fn generation_id(bytes: &[u8]) -> GenerationId {
    bytes.try_into().unwrap_or(FIRST)
}

pub(super) fn change_to_bytes(change: &SessionChange) -> Vec<u8> {
    let kind = match change.kind {
        ChangeKind::Created => 1,
        ChangeKind::Rolled => 2,
        ChangeKind::Refreshed => 3,
        ChangeKind::Changed => 4,
        ChangeKind::Ended => 5,
    };
    let kept = KeptChange {
        kind,
        handle: change.handle.as_bytes().to_vec(),
        issuer: change.issuer.clone(),
        subject: change.subject.clone(),
        at_ms: change.at_ms,
        cause: change.cause.map(Cause::name).unwrap_or_default().to_owned(),
    };
    kept.encode_to_vec()
}

pub(super) fn change_from_bytes(bytes: &[u8]) -> Result<SessionChange, SealError> {
    let kept = KeptChange::decode(bytes).map_err(malformed)?;
    let kind = match kept.kind {
        1 => ChangeKind::Created,
        2 => ChangeKind::Rolled,
        3 => ChangeKind::Refreshed,
        5 => ChangeKind::Ended,
        // A kind of a newer release: whoever remembers the session has to read it again.
        _ => ChangeKind::Changed,
    };
    let handle = kept
        .handle
        .as_slice()
        .try_into()
        .map_err(|_| SealError::NotReadable)?;
    Ok(SessionChange {
        kind,
        handle: Handle::from_bytes(handle),
        issuer: kept.issuer,
        subject: kept.subject,
        at_ms: kept.at_ms,
        cause: (!kept.cause.is_empty()).then(|| Cause::of_name(&kept.cause)),
    })
}

pub(super) fn type_to_kept(access: &AccessToken) -> String {
    if access.token_type == BEARER {
        String::new()
    } else {
        access.token_type.clone()
    }
}

pub(super) fn type_from_kept(kept: String) -> String {
    if kept.is_empty() { BEARER.to_owned() } else { kept }
}

fn device_to_kept(device: &Device, created_at_ms: u64) -> KeptDevice {
    let address = match device.address {
        None => Vec::new(),
        Some(IpAddr::V4(address)) => address.octets().to_vec(),
        Some(IpAddr::V6(address)) => address.octets().to_vec(),
    };
    let seen_after_ms = distance(created_at_ms, device.at_ms);
    KeptDevice {
        user_agent: device.user_agent.clone(),
        address,
        seen_after_ms,
        as_created: false,
    }
}

fn device_from_kept(kept: KeptDevice, created_at_ms: u64) -> Device {
    let bytes = kept.address.as_slice();
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok();
    let at_ms = created_at_ms.saturating_add_signed(kept.seen_after_ms);
    Device {
        user_agent: kept.user_agent,
        address,
        at_ms,
    }
}

/// No attributes are written as nothing.
fn attributes_to_kept(attributes: &Claims) -> String {
    let some = Some(attributes).filter(|attributes| **attributes != Claims::default());
    some.map(|some| some.text().to_owned()).unwrap_or_default()
}

fn malformed(cause: impl std::error::Error + Send + Sync + 'static) -> SealError {
    SealError::Malformed(Box::new(cause))
}

fn distance(from_ms: u64, to_ms: u64) -> i64 {
    let forward = i64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or(i64::MAX);
    let back = i64::try_from(from_ms.saturating_sub(to_ms)).unwrap_or(i64::MAX);
    if to_ms >= from_ms { forward } else { -back }
}
