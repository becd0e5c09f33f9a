//! Results of probes that bypass every cache: facts without a verdict.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value};
use url::Url;

use crate::tokens::key_set::KeySet;
use crate::{OAuthError, ProviderError, SigningAlgorithm};

/// `Date` has whole seconds, and both sides round (RFC 9110 section 5.6.7).
const GRANULARITY_SECS: i64 = 1;

/// The answer to a request for the discovery document.
#[derive(Debug)]
pub struct DiscoveryProbe {
    /// The requested URL.
    pub url: Url,
    /// The document, or the reason why it is missing.
    pub document: Result<Map<String, Value>, ProviderError>,
    /// The target of a redirect; redirects are not followed.
    pub location: Option<String>,
    /// How many seconds the provider's clock is ahead of ours, if it sent a date.
    pub clock_offset_secs: Option<i64>,
    /// The server's certificate, DER.
    pub certificate: Option<Vec<u8>>,
}

/// The keys a provider publishes.
#[derive(Debug)]
pub struct KeySetProbe {
    keys: KeySet,
    /// The kinds of keys, each once: `RSA`, `EC P-256`, including kinds that we cannot use.
    pub kinds: Vec<String>,
}

impl KeySetProbe {
    pub(crate) fn new(document: &Map<String, Value>) -> Option<Self> {
        let mut kinds = Vec::new();
        for key in document.get("keys")?.as_array()? {
            let text = |name: &str| key.get(name).and_then(Value::as_str);
            let members = [text("kty"), text("crv"), text("alg")];
            let kind = members.into_iter().flatten().collect::<Vec<_>>().join(" ");
            if !kind.is_empty() && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Some(Self {
            keys: KeySet::new(document)?,
            kinds,
        })
    }

    /// The number of keys that verify signatures of an algorithm.
    #[must_use]
    pub fn fitting(&self, algorithm: SigningAlgorithm) -> usize {
        self.keys.fitting(algorithm)
    }
}

/// How the token endpoint treats this client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientVerdict {
    /// It rejected the made-up grant, and not the client (RFC 6749 section 5.2).
    Believed,
    /// It rejected the client ([`OAuthError::is_about_client`]).
    NotBelieved(OAuthError),
    /// It knows the client, but does not allow it this grant.
    NotAllowed(OAuthError),
    /// It rejected the request for another reason.
    Unclear(OAuthError),
}

impl From<OAuthError> for ClientVerdict {
    fn from(error: OAuthError) -> Self {
        match error.code() {
            "invalid_grant" => Self::Believed,
            _ if error.is_about_client() => Self::NotBelieved(error),
            "unauthorized_client" | "unsupported_grant_type" => Self::NotAllowed(error),
            _ => Self::Unclear(error),
        }
    }
}

/// The authorization endpoint's answer to a user who is not signed in, with `prompt=none`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationProbe {
    /// It returned the browser to our redirect URI, with this error (OpenID Connect Core 3.1.2.6).
    Returned(Option<OAuthError>),
    /// It sent the browser elsewhere.
    Elsewhere,
    /// It returned a page of its own with this status, for example for an unknown redirect URI.
    Page(u16),
}

impl AuthorizationProbe {
    pub(crate) fn of(status: u16, location: Option<&str>, redirect_uri: &str) -> Self {
        let Some(location) = location.filter(|_| (300..400).contains(&status)) else {
            return Self::Page(status);
        };
        let Some(query) = location
            .strip_prefix(redirect_uri)
            .filter(|rest| rest.starts_with(['?', '&', '#']))
        else {
            return Self::Elsewhere;
        };
        let pairs = url::form_urlencoded::parse(query.get(1..).unwrap_or_default().as_bytes());
        let value = |wanted: &str| Some(pairs.clone().find(|(name, _)| name == wanted)?.1);
        let description = value("error_description");
        let error =
            value("error").map(|code| OAuthError::new(&code).with_description(description.as_deref()));
        Self::Returned(error)
    }
}

/// How many seconds a server's clock is ahead of ours; 0 if `date` fits any time of an exchange that started
/// at `began` and took `took`. `age` is the answer's time in caches (RFC 9111 section 5.1).
pub(crate) fn clock_offset_secs(date: &str, age: Option<&str>, began: u64, took: Duration) -> Option<i64> {
    let date = httpdate::parse_http_date(date).ok()?;
    let date = i64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
    let age: i64 = age.and_then(|age| age.trim().parse().ok()).unwrap_or(0);
    let server_time = date.saturating_add(age);
    let began = i64::try_from(began).ok()?.saturating_sub(GRANULARITY_SECS);
    let took = i64::try_from(took.as_secs()).ok()?;
    let ended = began.saturating_add(took).saturating_add(2 * GRANULARITY_SECS);
    Some(server_time.saturating_sub(server_time.clamp(began, ended)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_off_only_by_what_the_exchange_does_not_explain() {
        const BEGAN: u64 = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT
        for (date, age, took, offset) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", None, 0, Some(0)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", None, 0, Some(0)),
            ("Sun, 06 Nov 1994 08:49:42 GMT", None, 4, Some(0)),
            ("Sun, 06 Nov 1994 08:51:38 GMT", None, 0, Some(120)),
            ("Sun, 06 Nov 1994 08:47:36 GMT", None, 3, Some(-120)),
            ("Sun, 06 Nov 1994 08:47:37 GMT", Some("120"), 0, Some(0)),
            ("yesterday", None, 0, None),
        ] {
            let found = clock_offset_secs(date, age, BEGAN, Duration::from_secs(took));
            assert_eq!(found, offset, "{date} {age:?} {took}");
        }
    }

    #[test]
    fn only_a_redirect_to_our_own_address_is_a_way_back() {
        const OURS: &str = "https://app.example/cb";
        let error = |code| AuthorizationProbe::Returned(Some(OAuthError::new(code)));
        for (status, location, expected) in [
            (
                303,
                Some("https://app.example/cb?state=a&error=login_required"),
                error("login_required"),
            ),
            (
                303,
                Some(
                    "https://app.example/cb?error=invalid_scope&error_description=no+such%0Ascope%1B[2J+%C3%A9",
                ),
                AuthorizationProbe::Returned(Some(
                    OAuthError::new("invalid_scope").with_description(Some("no such scope [2J")),
                )),
            ),
            (
                302,
                Some("https://app.example/cb?code=x"),
                AuthorizationProbe::Returned(None),
            ),
            (
                302,
                Some("https://app.example/cb.evil.example?error=a"),
                AuthorizationProbe::Elsewhere,
            ),
            (
                302,
                Some("https://op.example/login"),
                AuthorizationProbe::Elsewhere,
            ),
            (400, None, AuthorizationProbe::Page(400)),
            (
                400,
                Some("https://app.example/cb?error=a"),
                AuthorizationProbe::Page(400),
            ),
        ] {
            assert_eq!(
                AuthorizationProbe::of(status, location, OURS),
                expected,
                "{location:?}"
            );
        }
    }

    #[test]
    fn a_refused_grant_speaks_for_the_client_and_nothing_else_does() {
        let verdict = |code| ClientVerdict::from(OAuthError::new(code));
        assert_eq!(verdict("invalid_grant"), ClientVerdict::Believed);
        assert!(matches!(verdict("invalid_client"), ClientVerdict::NotBelieved(_)));
        assert!(matches!(
            verdict("unauthorized_client"),
            ClientVerdict::NotAllowed(_)
        ));
        assert!(matches!(verdict("invalid_request"), ClientVerdict::Unclear(_)));
        let settings = crate::ProviderSettings::new("https://op.example", "client");
        let of_answer = |code| OAuthError::of_answer(code, &Map::new(), 401, &settings);
        let unauthorized = |code| ClientVerdict::from(of_answer(code));
        assert_eq!(unauthorized("invalid_grant"), ClientVerdict::Believed);
        for code in ["unauthorized_client", "invalid_request"] {
            assert!(
                matches!(unauthorized(code), ClientVerdict::NotBelieved(_)),
                "{code}"
            );
        }
    }
}
