//! The tokens from a provider's token endpoint, and their scope.
//!
//! Invariant: `Debug` shows no token.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use chassis::secret::Secret;
use prost::Message;

use super::api_token::ApiTokens;

/// Parts of a signed JWT.
const JWT_PARTS: usize = 3;

/// A token. A JWT is stored as its decoded parts, which saves a quarter. Most calls never use a token, so the
/// parts share the bytes they were read from, and the text is rebuilt on demand.
///
/// Invariant: the text is restored byte for byte; a token for which this fails is stored as text.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct StoredToken {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    parts: Vec<Bytes>,
}

impl StoredToken {
    /// Stores a token as received.
    pub fn new(text: String) -> Self {
        match decoded(&text) {
            Some(parts) => Self::of_parts(parts),
            None => Self {
                text,
                parts: Vec::new(),
            },
        }
    }

    /// The token whose parts between the dots decode to these.
    pub(crate) fn of_parts(parts: Vec<Bytes>) -> Self {
        Self {
            text: String::new(),
            parts,
        }
    }

    /// The decoded parts of a JWT; empty for any other token.
    pub(crate) fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The token as received.
    pub fn text(&self) -> Secret<String> {
        Secret::new(if self.parts.is_empty() {
            self.text.clone()
        } else {
            compact(&self.parts)
        })
    }
}

fn decoded(text: &str) -> Option<Vec<Bytes>> {
    let parts: Vec<Bytes> = text
        .split('.')
        .map(|part| URL_SAFE_NO_PAD.decode(part).ok().map(Bytes::from))
        .collect::<Option<_>>()?;
    (parts.len() == JWT_PARTS && compact(&parts) == text).then_some(parts)
}

/// The compact serialisation of these parts (RFC 7515, section 7.1).
fn compact(parts: &[Bytes]) -> String {
    let mut text = String::with_capacity(parts.iter().map(|part| part.len() * 4 / 3 + 4).sum());
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push('.');
        }
        URL_SAFE_NO_PAD.encode_string(part, &mut text);
    }
    text
}

impl fmt::Debug for StoredToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

/// An access token, its type and its expiry.
#[derive(Clone, PartialEq, Message)]
pub struct AccessToken {
    /// The token.
    #[prost(message, required, tag = "1")]
    pub value: StoredToken,
    /// "Bearer" or "DPoP".
    #[prost(string, tag = "2")]
    pub token_type: String,
    /// When it expires, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "3")]
    pub expires_at_ms: u64,
    /// Its lifetime when it was issued, in milliseconds; [`AccessToken::LONG`] if that is longer or unknown.
    #[prost(uint64, tag = "4")]
    pub lifetime_ms: u64,
}

impl AccessToken {
    /// A lifetime that shortens no margin.
    pub const LONG: u64 = 0;

    /// A lifetime in its stored form, in milliseconds: whole seconds, and [`Self::LONG`] from an hour on,
    /// since no margin exceeds half an hour.
    #[must_use]
    pub fn kept_lifetime_ms(secs: u64) -> u64 {
        const LONG_SECS: u64 = 3_600;
        match secs {
            ..LONG_SECS => secs.max(1) * 1_000,
            LONG_SECS.. => Self::LONG,
        }
    }
}

/// A provider's answer to a refresh whose ID token cannot be validated yet. No caller receives its access
/// token before that. Its refresh token is already the session's, because the earlier one is invalid.
#[derive(Clone, PartialEq, Message)]
pub struct PendingAnswer {
    /// The access token.
    #[prost(message, required, tag = "1")]
    pub access: AccessToken,
    /// Its scope, if the answer names it.
    #[prost(message, optional, tag = "2")]
    pub scope: Option<Scope>,
    /// The ID token.
    #[prost(message, required, tag = "3")]
    pub id_token: StoredToken,
    /// When the answer was received, in ms since the Unix epoch: its ID token is validated as of then.
    #[prost(uint64, tag = "4")]
    pub(crate) answered_at_ms: u64,
}

/// The tokens of a session.
#[derive(Clone, PartialEq, Message)]
pub struct SessionTokens {
    /// The access token, if the provider gave one.
    #[prost(message, optional, tag = "1")]
    pub access: Option<AccessToken>,
    /// Its scope.
    #[prost(message, required, tag = "2")]
    pub scope: Scope,
    /// The refresh token, if the provider issued one that still works.
    #[prost(message, optional, tag = "3")]
    pub refresh: Option<StoredToken>,
    /// The ID token as received, if it is stored as a hint for sign-out.
    #[prost(message, optional, tag = "4")]
    pub id_token: Option<StoredToken>,
    /// Counts the saved outcomes of refreshes, including a refusal and a pending answer: distinguishes tokens
    /// that a caller has seen from their successors.
    #[prost(uint64, tag = "5")]
    pub generation: u64,
    /// The newest refresh's answer while it is pending; its refresh token is already in `refresh`.
    #[prost(message, optional, boxed, tag = "6")]
    pub pending: Option<Box<PendingAnswer>>,
    /// Tokens for single APIs.
    #[prost(message, required, tag = "7")]
    pub api: ApiTokens,
    /// Number of outcomes saved since the access token that brought no new one: refreshes for single APIs.
    #[prost(uint64, tag = "8")]
    pub other_grants: u64,
    /// Time of the provider's last answer to a refresh, in milliseconds since the Unix epoch; 0 before the
    /// first.
    #[prost(uint64, tag = "9")]
    pub granted_at_ms: u64,
}

impl SessionTokens {
    /// Distinguishes an access token that a caller has seen from its successor.
    pub(crate) fn access_generation(&self) -> u64 {
        self.generation.saturating_sub(self.other_grants)
    }
}

/// A set of scope names in their original order (RFC 6749, section 3.3).
///
/// Stored as text: names with one space between them, each once.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Scope(#[prost(string, tag = "1")] String);

impl Scope {
    /// Reads space-separated names; a repeated name counts once.
    pub fn parse(text: &str) -> Self {
        let mut scope = Self(String::with_capacity(text.len()));
        for name in text.split_ascii_whitespace() {
            if !scope.has(name) {
                let space = if scope.0.is_empty() { "" } else { " " };
                scope.0.extend([space, name]);
            }
        }
        scope
    }

    fn has(&self, name: &str) -> bool {
        self.0.split(' ').any(|known| known == name)
    }

    /// Whether tokens of this scope allow access without the user (OpenID Connect Core 1.0, section 11).
    pub(crate) fn is_offline(&self) -> bool {
        self.has("offline_access")
    }

    /// Fails if required names are missing from this scope.
    pub(crate) fn check(&self, required: &[String]) -> Result<(), TokenRefusal> {
        let missing = required.iter().filter(|name| !self.has(name));
        let missing: Vec<String> = missing.cloned().collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(TokenRefusal::InsufficientScope(missing))
        }
    }

    /// The names, space-separated.
    pub(crate) fn text(&self) -> String {
        self.0.clone()
    }
}

/// A token to return.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantedToken {
    /// The token.
    pub access: AccessToken,
    /// Its scope.
    pub scope: Scope,
}

/// Why no token can be returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// The session has neither an access token nor a refresh token.
    #[error("the session holds no access token")]
    MissingAccessToken,
    /// These scopes were required and not granted.
    #[error("not granted: {}", .0.join(" "))]
    InsufficientScope(Vec<String>),
    /// A refresh was forced, but there is no refresh token.
    #[error("the session holds no refresh token")]
    MissingRefreshToken,
    /// The access token has expired and there is no refresh token.
    #[error("the access token has expired and cannot be refreshed")]
    ExpiredAccessToken,
    /// The API has its own authorization server, and the session stores no ID token.
    #[error("the session holds no ID token: set EDGE_STORE_ID_TOKEN")]
    MissingIdToken,
    /// The ID token has expired and there is no refresh token.
    #[error("the ID token has expired and cannot be refreshed: sign in again")]
    ExpiredIdToken,
    /// The provider refused the refresh token before: it is not retried.
    #[error("the provider refused to refresh the tokens: sign in again")]
    RefusedBefore,
    /// The person must sign in again.
    #[error("a security event requires a new sign-in: sign in again")]
    SignInOwed,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_token_comes_back_byte_for_byte(text in "[A-Za-z0-9_=+/.-]{0,80}") {
            let token = StoredToken::new(text.clone());
            let read = StoredToken::decode(token.encode_to_vec().as_slice()).unwrap();
            prop_assert_eq!(read.text().into_inner(), text);
            prop_assert_eq!(read, token);
        }
    }

    #[test]
    fn a_jwt_takes_a_quarter_less() {
        let jwt = format!("{0}.{0}.{0}", URL_SAFE_NO_PAD.encode([7; 300]));
        let token = StoredToken::new(jwt.clone());
        assert!(token.encoded_len() < jwt.len() * 4 / 5);
        assert_eq!(token.text().expose(), &jwt);
    }

    #[test]
    fn a_scope_keeps_order_and_drops_repeats() {
        assert_eq!(Scope::parse(" openid  profile openid ").text(), "openid profile");
        assert_eq!(Scope::parse("").text(), "");
        assert_eq!(Scope::parse("openid open id"), Scope("openid open id".to_owned()));
    }

    #[test]
    fn missing_names_are_told_case_sensitively() {
        let required = ["openid".to_owned(), "Email".to_owned()];
        let refusal = TokenRefusal::InsufficientScope(vec!["Email".to_owned()]);
        assert_eq!(Scope::parse("openid email").check(&required), Err(refusal));
    }
}
