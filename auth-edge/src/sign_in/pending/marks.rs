//! What a browser remembers of a sign-in that is over, so that nothing goes round in circles: that a silent one found nobody,
//! and that a session still lacks what its sign-in was requested for.
//!
//! Invariants: a mark grants nothing, it only keeps a visitor from being sent to the provider; the next sign-in that begins takes
//! all marks away. Deliberately absent: a seal, since who forges a mark stops nobody but themselves.

use axum::http::{HeaderMap, HeaderValue};
use oidc::ResponseMode;

use super::PendingSignIns;
use crate::sessions::cookies;

/// Last part of the name of the mark of a silent sign-in: no ID of a state is that short.
const SILENT: &str = "silent";
/// How long a silent sign-in that found nobody is remembered, in seconds: longer than a page and its redirects take to load,
/// shorter than somebody needs to sign in elsewhere and come back.
const SILENT_SECS: u64 = 60;
/// Last part of the name of the mark of what is lacking.
const LACKING: &str = "lacking";
/// How long what is lacking is remembered, in seconds: longer than somebody reads the page that says so and tries again, shorter
/// than a provider takes to be set up otherwise.
const LACKING_SECS: u64 = 300;

impl PendingSignIns {
    /// The `Set-Cookie` value that remembers for a minute that a silent sign-in at this provider found nobody.
    #[must_use]
    pub(crate) fn mark_silent(&self, provider: &str, mode: ResponseMode) -> Option<HeaderValue> {
        self.mark(SILENT, provider, mode, SILENT_SECS)
    }

    /// Whether a silent sign-in of this browser at this provider found nobody a moment ago.
    #[must_use]
    pub(crate) fn was_silent(&self, headers: &HeaderMap, provider: &str) -> bool {
        self.is_marked(headers, SILENT, provider)
    }

    /// The `Set-Cookie` value that remembers for a while what a session lacks though its sign-in was requested for it.
    #[must_use]
    pub(crate) fn remember_lacking(&self, what: &str) -> Option<HeaderValue> {
        self.mark(LACKING, what, ResponseMode::Query, LACKING_SECS)
    }

    /// Whether a sign-in was requested for this and did not bring it.
    #[must_use]
    pub(crate) fn is_lacking(&self, headers: &HeaderMap, what: &str) -> bool {
        self.is_marked(headers, LACKING, what)
    }

    fn mark(&self, name: &str, value: &str, mode: ResponseMode, secs: u64) -> Option<HeaderValue> {
        let attributes = self.attributes(mode);
        HeaderValue::try_from(format!(
            "{}{name}={value}{attributes}; Max-Age={secs}",
            self.prefix
        ))
        .ok()
    }

    fn is_marked(&self, headers: &HeaderMap, name: &str, value: &str) -> bool {
        cookies::only_value(headers, &format!("{}{name}", self.prefix)) == Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::pending::tests::{Jar, pending, start};

    #[test]
    fn a_mark_lasts_until_the_next_sign_in_begins() {
        let (pending, mut jar) = (pending("secret"), Jar::default());
        assert!(!pending.was_silent(&jar.headers(), "a"));
        assert!(!pending.is_lacking(&jar.headers(), "x"));
        jar.take(&[
            pending.mark_silent("a", ResponseMode::Query).unwrap(),
            pending.remember_lacking("x").unwrap(),
        ]);
        assert!(pending.was_silent(&jar.headers(), "a"));
        assert!(
            !pending.was_silent(&jar.headers(), "b"),
            "another provider may be asked"
        );
        assert!(pending.is_lacking(&jar.headers(), "x"));
        assert!(
            !pending.is_lacking(&jar.headers(), "y"),
            "another demand may be made"
        );
        start(&pending, &mut jar, "/a", 1_000);
        assert!(!pending.was_silent(&jar.headers(), "a"));
        assert!(!pending.is_lacking(&jar.headers(), "x"));
    }

    #[test]
    fn a_sign_out_takes_all_away_as_it_was_set() {
        for mode in [ResponseMode::Query, ResponseMode::FormPost] {
            let (pending, mut jar) = (pending("secret"), Jar::default());
            start(&pending, &mut jar, "/a", 1_000);
            start(&pending, &mut jar, "/b", 1_000);
            jar.take(&[pending.remember_lacking("x").unwrap()]);
            let cleared = pending.clear_all(&jar.headers(), mode);
            assert_eq!(cleared.len(), 3);
            for cookie in &cleared {
                assert!(
                    cookie
                        .to_str()
                        .unwrap()
                        .ends_with(&format!("{}; Max-Age=0", pending.attributes(mode)))
                );
            }
            jar.take(&cleared);
            assert_eq!(jar.bytes(), 0);
        }
    }
}
