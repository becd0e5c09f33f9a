//! The identity headers of a rule, under the names that its application reads, such as `Remote-User`.
//!
//! Invariants
//! - No name routes or frames a message, holds credentials, or is reserved for the edge.
//! - No two names of a table are equal for an application that folds names.

use std::sync::Arc;

use http::HeaderName;

use crate::values::claim_path::ClaimPath;
use crate::values::forwarded::describes_origin;
use crate::values::header_name::{HOP_BY_HOP, folded};

/// The longest name, in bytes: the longest known ones have some forty.
const MAX_NAME_BYTES: usize = 64;

/// The default claims of an assertion.
pub(crate) const ASSERTED_CLAIMS: [&str; 9] = [
    "acr",
    "amr",
    "name",
    "email",
    "email_verified",
    "org_id",
    "org_name",
    "roles",
    "groups",
];

/// Claims of an assertion that only the edge sets.
pub(crate) const OWN_CLAIMS: [&str; 10] = [
    "iss",
    "aud",
    "sub",
    "sid",
    "idp",
    "client_id",
    "iat",
    "exp",
    "jti",
    "auth_time",
];

/// The headers of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamHeaders {
    /// Sorted by name.
    pub(crate) all: Vec<UpstreamHeader>,
    /// The encoding of values.
    pub(crate) encoding: HeaderEncoding,
}

impl UpstreamHeaders {
    /// The headers that oauth2-proxy sends to an upstream.
    pub(crate) fn of_oauth2_proxy() -> Self {
        Self::identity([
            "x-forwarded-email",
            "x-forwarded-groups",
            "x-forwarded-preferred-username",
            "x-forwarded-user",
        ])
    }

    /// The headers of its answers to checks.
    pub(crate) fn of_oauth2_proxy_checks() -> Self {
        Self::identity([
            "x-auth-request-email",
            "x-auth-request-groups",
            "x-auth-request-preferred-username",
            "x-auth-request-user",
        ])
    }

    /// E-mail address, groups, name and subject under these names.
    fn identity([email, groups, name, subject]: [&'static str; 4]) -> Self {
        let claim = |claim: &str| HeaderSource::Claim(ClaimPath::of_names(vec![claim.to_owned()]));
        let all = [
            (email, claim("email")),
            (groups, claim("groups")),
            (name, claim("preferred_username")),
            (subject, HeaderSource::Subject),
        ];
        let header = |(name, source)| UpstreamHeader {
            name: HeaderName::from_static(name),
            source,
        };
        Self {
            all: all.into_iter().map(header).collect(),
            encoding: HeaderEncoding::Utf8,
        }
    }
}

/// One header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamHeader {
    /// Its name.
    pub(crate) name: HeaderName,
    /// The source of its value.
    pub(crate) source: HeaderSource,
}

/// The source of a header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderSource {
    /// The subject at its issuer.
    Subject,
    /// The issuer.
    Issuer,
    /// The session's public handle.
    Session,
    /// A claim of the user.
    Claim(ClaimPath),
}

/// The encoding of text in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HeaderEncoding {
    /// UTF-8, which most applications read.
    #[default]
    Utf8,
    /// Percent-encoded UTF-8 (RFC 3986, section 2.1): spaces, commas, `%` and non-ASCII characters.
    Percent,
}

impl HeaderSource {
    /// Reads a source.
    ///
    /// # Errors
    /// What to write instead.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "subject" => Ok(Self::Subject),
            "issuer" => Ok(Self::Issuer),
            "session" => Ok(Self::Session),
            _ => match text.strip_prefix("claim:") {
                Some(claim) => ClaimPath::parse(claim).map(Self::Claim),
                None => Err("a header holds \"claim:NAME\", \"subject\", \"issuer\" or \"session\""),
            },
        }
    }
}

/// Exceptions from the reserved prefixes: identity headers of other products.
const OPEN: [&str; 8] = [
    "x-forwarded-user",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-auth-request-user",
    "x-auth-request-email",
    "x-auth-request-groups",
    "x-auth-request-preferred-username",
];

/// Only the edge sets these headers, and those that describe the origin of a request.
const OWN: [&str; 4] = ["x-csrf", "x-request-id", "traceparent", "tracestate"];

/// Only the edge sets headers with these prefixes.
const OWN_BEGINNINGS: [&str; 3] = ["x-auth-", "x-rewrite-", "x-vestibule-"];

/// Headers that hold credentials.
const CREDENTIALS: [&str; 5] = [
    "authorization",
    "cookie",
    "dpop",
    "set-cookie",
    "www-authenticate",
];

/// Headers that route a message or define its meaning for readers and caches. Hop-by-hop headers count too.
const MEANING: [&str; 12] = [
    "host",
    "via",
    "accept",
    "cache-control",
    "clear-site-data",
    "location",
    "origin",
    "range",
    "referer",
    "refresh",
    "user-agent",
    "vary",
];

/// Prefixes of headers that frame a message or define its meaning.
const MEANING_BEGINNINGS: [&str; 10] = [
    "accept-",
    "access-control-",
    "content-",
    "if-",
    "proxy-",
    "sec-",
    "upgrade-",
    "x-accel-",
    "x-http-method",
    "x-method-",
];

/// Reads the name of a header that a table may set.
///
/// # Errors
/// Why the name is not allowed.
pub(crate) fn parse_name(text: &str) -> Result<HeaderName, &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if !begins || text.len() > MAX_NAME_BYTES || !text.bytes().all(plain) {
        return Err(
            "a header's name begins with a letter and holds letters, digits, - and _, at most 64 of them",
        );
    }
    let name = HeaderName::try_from(text).map_err(|_| "that is not a header name")?;
    let folded = folded(name.as_str());
    let folded = folded.as_ref();
    let begins_with = |beginnings: &[&str]| beginnings.iter().any(|beginning| folded.starts_with(beginning));
    if OPEN.contains(&folded) {
        return Ok(name);
    }
    if CREDENTIALS.contains(&folded) {
        return Err("that header carries credentials, and a claim is not one");
    }
    if OWN.contains(&folded) || begins_with(&OWN_BEGINNINGS) || describes_origin(folded) {
        return Err("only the edge itself sets that header");
    }
    let is_of_one_hop = HOP_BY_HOP.iter().any(|name| name.as_str() == folded);
    if is_of_one_hop || MEANING.contains(&folded) || begins_with(&MEANING_BEGINNINGS) {
        return Err("that header controls how a message is read or where it goes, not identity");
    }
    Ok(name)
}

/// The folded names that any rule of a table sets. No client may send them to any upstream: one application
/// may be behind several rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdentityHeaderNames(Arc<[Box<str>]>);

impl IdentityHeaderNames {
    /// The names in these tables.
    pub(super) fn of<'a>(tables: impl Iterator<Item = &'a UpstreamHeaders>) -> Self {
        let names = tables.flat_map(|table| &table.all);
        let mut names: Vec<Box<str>> = names
            .map(|header| folded(header.name.as_str()).as_ref().into())
            .collect();
        names.sort_unstable();
        names.dedup();
        Self(names.into())
    }

    /// Whether a folded name is in the set.
    #[must_use]
    pub(crate) fn contain(&self, folded: &str) -> bool {
        self.0.iter().any(|name| **name == *folded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_applications_read_are_taken_and_names_that_mean_something_else_are_not() {
        for name in [
            "Remote-User",
            "REMOTE_USER",
            "X-WEBAUTH-EMAIL",
            "X-Remote-User",
            "X-Forwarded-User",
            "x-forwarded-groups",
            "X-Auth-Request-Email",
            "Cf-Access-Authenticated-User-Email",
            "OIDC_CLAIM_email",
            "SM_USER",
            "User",
        ] {
            assert!(parse_name(name).is_ok(), "{name}");
        }
        for name in [
            "Host",
            "Content-Length",
            "content_length",
            "Content-Type",
            "Transfer-Encoding",
            "Transfer_Encoding",
            "Connection",
            "Keep-Alive",
            "Upgrade",
            "TE",
            "Trailer",
            "Expect",
            "Via",
            "Cookie",
            "Set-Cookie",
            "Authorization",
            "DPoP",
            "Proxy-Authorization",
            "Proxy-Connection",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X_Forwarded_Proto",
            "X-Forwarded-Access-Token",
            "X-Auth-Subject",
            "X_Auth_Subject",
            "X-Auth-Assertion",
            "X-Auth-Anything",
            "X-Request-Id",
            "traceparent",
            "X-Real-IP",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-CSRF",
            "Origin",
            "Referer",
            "Range",
            "If-Match",
            "Sec-Fetch-Site",
            "Sec-WebSocket-Key",
            "X-HTTP-Method-Override",
            "X-Method-Override",
            "Location",
            "Vary",
            "Cache-Control",
            "Access-Control-Allow-Origin",
            "X-Accel-Redirect",
            "User-Agent",
            "",
            "-a",
            "a b",
            "a:b",
            "é",
            "1a",
        ] {
            assert!(parse_name(name).is_err(), "{name}");
        }
        assert!(parse_name(&"a".repeat(MAX_NAME_BYTES + 1)).is_err());
    }

    #[test]
    fn a_source_is_one_of_few_words() {
        assert_eq!(HeaderSource::parse("subject"), Ok(HeaderSource::Subject));
        assert!(matches!(
            HeaderSource::parse("claim:a.b"),
            Ok(HeaderSource::Claim(_))
        ));
        for text in ["", "claim", "claim:", "claims:a", "email", "Subject", "claim:a.."] {
            assert!(HeaderSource::parse(text).is_err(), "{text}");
        }
    }
}
