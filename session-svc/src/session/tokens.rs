//! What a provider's token endpoint gave, and the scope of it.
//!
//! Invariant: no token shows in `Debug`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use chassis::secret::Secret;

use super::ApiTokens;

/// A token. Most calls never look at one, so a JWT may be held as the decoded parts it is kept as, which share the bytes
/// they were read from; it is put together when its text is needed.
#[derive(Clone)]
pub struct StoredToken(TokenForm);

#[derive(Clone)]
enum TokenForm {
    Text(Secret<String>),
    Parts(Vec<Bytes>),
}

impl StoredToken {
    /// A token as it came.
    pub fn new(text: String) -> Self {
        Self(TokenForm::Text(Secret::new(text)))
    }

    /// The token whose parts between the dots decode to these.
    pub(crate) fn of_parts(parts: Vec<Bytes>) -> Self {
        Self(TokenForm::Parts(parts))
    }

    /// The decoded parts, if it is held so.
    pub(crate) fn parts(&self) -> Option<&[Bytes]> {
        match &self.0 {
            TokenForm::Text(_) => None,
            TokenForm::Parts(parts) => Some(parts),
        }
    }

    /// The token as it came.
    pub fn text(&self) -> Secret<String> {
        match &self.0 {
            TokenForm::Text(text) => text.clone(),
            TokenForm::Parts(parts) => Secret::new(compact(parts)),
        }
    }
}

/// The compact serialisation of these parts (RFC 7515, section 7.1).
pub(crate) fn compact(parts: &[Bytes]) -> String {
    let mut text = String::with_capacity(parts.iter().map(|part| part.len() * 4 / 3 + 4).sum());
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push('.');
        }
        URL_SAFE_NO_PAD.encode_string(part, &mut text);
    }
    text
}

impl From<Secret<String>> for StoredToken {
    fn from(text: Secret<String>) -> Self {
        Self(TokenForm::Text(text))
    }
}

impl PartialEq for StoredToken {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for StoredToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

/// An access token, its type and its expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessToken {
    /// The token.
    pub value: StoredToken,
    /// "Bearer" or "DPoP".
    pub token_type: String,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
    /// For how long it was valid when it was issued, in milliseconds; [`AccessToken::LONG`] if that is longer or unknown.
    pub lifetime_ms: u64,
}

impl AccessToken {
    /// A lifetime that shortens no margin, in milliseconds.
    pub const LONG: u64 = u64::MAX;

    /// A lifetime as it is kept, in milliseconds: whole seconds, and [`Self::LONG`] from an hour on, since no margin is longer than
    /// half of that.
    #[must_use]
    pub fn kept_lifetime_ms(secs: u64) -> u64 {
        const LONG_SECS: u64 = 3_600;
        match secs {
            ..LONG_SECS => secs.max(1) * 1_000,
            LONG_SECS.. => Self::LONG,
        }
    }
}

/// A provider's answer to a refresh whose ID token cannot be validated yet. Nobody sees its access token before that; its
/// refresh token is the session's already, for the one before is worth nothing any more.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingAnswer {
    /// The access token.
    pub access: AccessToken,
    /// Its scope, when the answer names it.
    pub scope: Option<Scope>,
    /// The ID token.
    pub id_token: StoredToken,
    /// When the answer came, in milliseconds since the Unix epoch: the instant its ID token is validated by.
    pub(crate) answered_at_ms: u64,
}

/// The tokens of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionTokens {
    /// The access token, if the provider gave one.
    pub access: Option<AccessToken>,
    /// Its scope.
    pub scope: Scope,
    /// The refresh token, if the provider gave one that still works.
    pub refresh: Option<StoredToken>,
    /// The ID token as it came, if it is kept as a hint for sign-out.
    pub id_token: Option<StoredToken>,
    /// Counts the outcomes of refreshes that were saved, a refusal and a pending answer included: distinguishes the
    /// tokens that were seen from what replaced them.
    pub generation: u64,
    /// The newest refresh's answer while it is pending; its refresh token is `refresh` already.
    pub pending: Option<Box<PendingAnswer>>,
    /// Tokens for single APIs.
    pub api: ApiTokens,
    /// How many outcomes were saved since the access token came that brought no other: refreshes for single APIs.
    pub other_grants: u64,
    /// When the provider answered a refresh last, in milliseconds since the Unix epoch; 0 if it has not since the session began.
    pub granted_at_ms: u64,
}

impl SessionTokens {
    /// Distinguishes the access token that was seen from what replaced it.
    pub(crate) fn access_generation(&self) -> u64 {
        self.generation.saturating_sub(self.other_grants)
    }
}

/// A set of scope names in the order they were given (RFC 6749, section 3.3).
///
/// Held as its text: names with one space between them, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(String);

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

    /// The scope whose text this is.
    pub(crate) fn of_text(text: String) -> Self {
        Self(text)
    }

    fn has(&self, name: &str) -> bool {
        self.0.split(' ').any(|known| known == name)
    }

    /// Whether tokens of this scope are for when nobody is there (OpenID Connect Core 1.0, section 11).
    pub(crate) fn is_offline(&self) -> bool {
        self.has("offline_access")
    }

    /// Which of the required names are not here.
    pub(crate) fn missing<'a>(&self, required: &'a [String]) -> Vec<&'a str> {
        required
            .iter()
            .map(String::as_str)
            .filter(|name| !self.has(name))
            .collect()
    }

    /// The names, space-separated.
    pub(crate) fn text(&self) -> String {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_keeps_order_and_drops_repeats() {
        assert_eq!(Scope::parse(" openid  profile openid ").text(), "openid profile");
        assert_eq!(Scope::parse("").text(), "");
        assert_eq!(
            Scope::parse("openid open id"),
            Scope::of_text("openid open id".to_owned())
        );
    }

    #[test]
    fn missing_names_are_told_case_sensitively() {
        let required = ["openid".to_owned(), "Email".to_owned()];
        assert_eq!(Scope::parse("openid email").missing(&required), ["Email"]);
    }
}
