//! What a provider's token endpoint gave, and the scope of it.
//!
//! Invariant: no token shows in `Debug`.

use chassis::secret::Secret;

/// An access token and what is known about it.
#[derive(Clone, Debug)]
pub struct AccessToken {
    /// The token.
    pub value: Secret<String>,
    /// "Bearer" or "DPoP".
    pub token_type: String,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// The tokens of a session.
#[derive(Clone, Debug, Default)]
pub struct TokenSet {
    /// The access token, if the provider gave one.
    pub access: Option<AccessToken>,
    /// Its scope.
    pub scope: Scope,
    /// The refresh token, if the provider gave one that still works.
    pub refresh: Option<Secret<String>>,
    /// The ID token as it came, if it is kept as a hint for sign-out.
    pub id_token: Option<Secret<String>>,
    /// Grows by one with every refresh: tells a token that was seen from the one that took its place.
    pub generation: u64,
}

/// A set of scope names in the order they were given (RFC 6749, section 3.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(Vec<String>);

impl Scope {
    /// Reads space-separated names; a repeated name counts once.
    pub fn parse(text: &str) -> Self {
        let mut names: Vec<String> = Vec::new();
        for name in text.split_ascii_whitespace() {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Self(names)
    }

    /// Which of the names asked for are not here.
    pub fn missing<'a>(&self, asked: &'a [String]) -> Vec<&'a str> {
        asked
            .iter()
            .map(String::as_str)
            .filter(|name| !self.0.iter().any(|known| known == name))
            .collect()
    }

    /// The names, space-separated.
    pub fn text(&self) -> String {
        self.0.join(" ")
    }
}

impl PartialEq for AccessToken {
    fn eq(&self, other: &Self) -> bool {
        self.value.expose() == other.value.expose()
            && self.token_type == other.token_type
            && self.expires_at_ms == other.expires_at_ms
    }
}

impl PartialEq for TokenSet {
    fn eq(&self, other: &Self) -> bool {
        let same = |left: &Option<Secret<String>>, right: &Option<Secret<String>>| {
            left.as_ref().map(Secret::expose) == right.as_ref().map(Secret::expose)
        };
        self.access == other.access
            && self.scope == other.scope
            && same(&self.refresh, &other.refresh)
            && same(&self.id_token, &other.id_token)
            && self.generation == other.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_keeps_order_and_drops_repeats() {
        assert_eq!(Scope::parse(" openid  profile openid ").text(), "openid profile");
        assert_eq!(Scope::parse("").text(), "");
    }

    #[test]
    fn missing_names_are_told_case_sensitively() {
        let asked = ["openid".to_owned(), "Email".to_owned()];
        assert_eq!(Scope::parse("openid email").missing(&asked), ["Email"]);
    }
}
