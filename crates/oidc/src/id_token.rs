//! ID tokens: what a login expects of one and what a valid one says (OpenID Connect Core 2 and 3.1.3.7).

use serde_json::{Map, Value};

/// What the login that is being finished asked for.
#[derive(Clone, Copy, Default)]
pub struct Expected<'a> {
    /// The nonce sent; always required.
    pub nonce: &'a str,
    /// The access token issued together with the ID token, for `at_hash`.
    pub access_token: Option<&'a str>,
    /// `max_age` in seconds, when the login asked for it; a configured one applies without being repeated.
    pub max_age: Option<u64>,
    /// `acr_values`, space-separated, when the login asked for them; configured ones apply without being repeated.
    pub acr_values: Option<&'a str>,
    /// Organization the login asked for; a configured one applies in its place.
    pub organization: Option<&'a str>,
}

/// A validated ID token.
#[derive(Clone, PartialEq)]
pub struct IdToken {
    /// All claims, the protocol's included.
    pub claims: Map<String, Value>,
    /// Issuer.
    pub iss: String,
    /// Subject.
    pub sub: String,
    /// The provider's session, when it tells.
    pub sid: Option<String>,
    /// When the person last proved who they are, in seconds since the Unix epoch.
    pub auth_time: Option<u64>,
    /// When the token was issued, in seconds since the Unix epoch.
    pub iat: u64,
    /// When the provider wants the session to end at the latest (`session_expiry`), in seconds since the Unix epoch.
    pub session_expiry: Option<u64>,
}

impl std::fmt::Debug for IdToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdToken")
            .field("iss", &self.iss)
            .field("iat", &self.iat)
            .finish_non_exhaustive()
    }
}
