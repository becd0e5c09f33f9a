//! Who a request acts for: the person of a session, or whoever an access token is about. Rules, headers and assertions ask
//! this, and not where it comes from.

use oidc::VerifiedAccessToken;
use serde_json::{Map, Value};
use session_proto::timestamp;

use crate::sessions::CachedSession;

/// Somebody who was authenticated.
#[derive(Clone, Copy)]
pub(crate) struct Principal<'a> {
    /// The issuer, within which the subject is unique.
    pub(crate) issuer: &'a str,
    /// The subject; `None` for a client that acts for itself.
    pub(crate) subject: Option<&'a str>,
    /// The claims that were made about them.
    pub(crate) claims: &'a Map<String, Value>,
    /// When they last proved who they are, in milliseconds since the Unix epoch; `None` if it is unknown.
    pub(crate) authenticated_at_ms: Option<u64>,
    /// The public handle of their session, if it is one.
    pub(crate) handle: Option<&'a str>,
    /// The client whose access token it is, if it is one.
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
