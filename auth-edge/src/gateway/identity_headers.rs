//! Headers that say who somebody is: taken from everybody, given by us.
//!
//! Invariant: what reaches an upstream under such a name was put there by this file, in whatever spelling a client tried.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::guard::Passed;

const SUBJECT: HeaderName = HeaderName::from_static("x-auth-subject");
const SESSION: HeaderName = HeaderName::from_static("x-auth-session");

/// Names besides those that begin with `x-auth-`, folded.
const SPOOFED: [&str; 5] = [
    "x-forwarded-user",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-access-token",
];

/// Removes every header that could pass for one of ours: case and `_`/`-` are folded, as CGI-like upstreams fold them.
pub(super) fn strip(headers: &mut HeaderMap) {
    let spoofed: Vec<HeaderName> = headers.keys().filter(|name| is_identity(name)).cloned().collect();
    for name in spoofed {
        headers.remove(name);
    }
}

/// Tells the upstream, or the proxy that asked, who it is.
pub(super) fn add(headers: &mut HeaderMap, passed: &Passed) {
    let Some(current) = &passed.current else { return };
    let pairs = [(SUBJECT, &current.session.subject), (SESSION, &current.session.handle)];
    for (name, value) in pairs {
        // A subject that cannot be a header value (controls, other than Latin) is left out rather than bent.
        if let Ok(value) = HeaderValue::try_from(value.as_str()) {
            headers.insert(name, value);
        }
    }
}

fn is_identity(name: &HeaderName) -> bool {
    let folded = name.as_str().to_ascii_lowercase().replace('_', "-");
    folded.starts_with("x-auth-") || SPOOFED.contains(&folded.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_removed_and_nothing_else() {
        let mut headers = HeaderMap::new();
        for name in [
            "x-auth-subject", "X_Auth_Subject", "x-auth_session", "x-auth-anything", "x_auth_", "x-forwarded-user", "X_FORWARDED_USER",
            "x-forwarded_email", "x-forwarded-groups", "x-forwarded-preferred_username", "x-forwarded-access-token",
        ] {
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("admin"));
        }
        let kept = ["x-author", "x-forwarded-for", "authorization", "x-authsubject"];
        for name in kept {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("stays"));
        }
        strip(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        assert_eq!(left, kept);
    }
}
