//! Who a request acts for: the person of a session, or whoever an access token is about. Rules, headers and assertions ask
//! this, and not where it comes from.

use oidc::VerifiedAccessToken;
use serde_json::{Map, Value};
use session_proto::timestamp;

use crate::sessions::CachedSession;

/// Somebody who was authenticated.
pub(crate) trait Principal {
    /// The issuer, within which the subject is unique.
    fn issuer(&self) -> &str;
    /// The subject; `None` for a client that acts for itself.
    fn subject(&self) -> Option<&str>;
    /// The claims that were made about them.
    fn claims(&self) -> &Map<String, Value>;
    /// One of these claims.
    fn claim(&self, name: &str) -> Option<&Value> {
        self.claims().get(name)
    }
    /// When they last proved who they are, in milliseconds since the Unix epoch; none where nobody tells.
    fn authenticated_at_ms(&self) -> Option<u64>;
    /// The public handle of their session, if it is one.
    fn handle(&self) -> Option<&str>;
    /// The client whose access token it is, if it is one.
    fn client_id(&self) -> Option<&str>;
}

impl Principal for CachedSession {
    fn issuer(&self) -> &str {
        &self.issuer
    }

    fn subject(&self) -> Option<&str> {
        Some(&self.subject)
    }

    fn claims(&self) -> &Map<String, Value> {
        Self::claims(self)
    }

    fn authenticated_at_ms(&self) -> Option<u64> {
        self.authenticated_at.as_ref().map(timestamp::to_ms)
    }

    fn handle(&self) -> Option<&str> {
        Some(&self.handle)
    }

    fn client_id(&self) -> Option<&str> {
        None
    }
}

impl Principal for VerifiedAccessToken {
    fn issuer(&self) -> &str {
        &self.iss
    }

    fn subject(&self) -> Option<&str> {
        self.sub.as_deref()
    }

    fn claims(&self) -> &Map<String, Value> {
        Self::claims(self)
    }

    fn authenticated_at_ms(&self) -> Option<u64> {
        self.auth_time.map(|secs| secs.saturating_mul(1_000))
    }

    fn handle(&self) -> Option<&str> {
        None
    }

    fn client_id(&self) -> Option<&str> {
        Some(&self.client_id)
    }
}
