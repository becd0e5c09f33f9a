//! The principal of a request: the user of a session, or the subject of an access token. Rules, headers and
//! assertions use this, independent of its source.

use oidc::VerifiedAccessToken;
use serde_json::{Map, Value};
use session_proto::timestamp;

use crate::sessions::CachedSession;

/// An authenticated user or client.
#[derive(Clone, Copy)]
pub(crate) struct Principal<'a> {
    /// The issuer, within which the subject is unique.
    pub(crate) issuer: &'a str,
    /// The subject; `None` for a client that acts for itself.
    pub(crate) subject: Option<&'a str>,
    /// The claims about the user or client.
    pub(crate) claims: &'a Map<String, Value>,
    /// The time of the last authentication, in milliseconds since the Unix epoch; `None` if it is unknown.
    pub(crate) authenticated_at_ms: Option<u64>,
    /// The public handle of the session; `None` without a session.
    pub(crate) handle: Option<&'a str>,
    /// The client of the access token; `None` without one.
    pub(crate) client_id: Option<&'a str>,
}

impl<'a> From<&'a CachedSession> for Principal<'a> {
    fn from(session: &'a CachedSession) -> Self {
        Self {
            issuer: &session.issuer,
            subject: Some(&session.subject),
            claims: session.claims(),
            authenticated_at_ms: session.authenticated_at.as_ref().map(timestamp::to_ms),
            handle: Some(&session.handle),
            client_id: None,
        }
    }
}

impl<'a> From<&'a VerifiedAccessToken> for Principal<'a> {
    fn from(token: &'a VerifiedAccessToken) -> Self {
        Self {
            issuer: &token.iss,
            subject: token.sub.as_deref(),
            claims: token.claims(),
            authenticated_at_ms: token.auth_time.map(|secs| secs.saturating_mul(1_000)),
            handle: None,
            client_id: Some(&token.client_id),
        }
    }
}
