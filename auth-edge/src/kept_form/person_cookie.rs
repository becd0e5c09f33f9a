//! A cookie that outlives the session and names the last user of a guarded page. So a form whose session has
//! ended is kept only for that user.
//!
//! Invariants
//! - It holds a sealed hash of issuer and subject: it reveals no identity, and only the edge can create it.
//! - It grants no access: the edge compares users with it, and never takes the user from it.
//! - Signing out in this browser deletes it.
//!
//! Deliberately absent: `Domain`. A form belongs to the host it was sent to.

use aws_lc_rs::digest;
use axum::http::{HeaderMap, HeaderValue};

use crate::sessions::cookies::{CookieSettings, only_value, pairs, set_cookie};
use crate::sessions::keys::DerivedKeys;

/// Appended to the session cookie's name.
const SUFFIX: &str = "_person";
/// Bytes of the hash: SHA-256.
const TAG_BYTES: usize = 32;
/// Lifetime in seconds: a page with a form may stay open for as long as a session lasts, and longer.
const MAX_AGE_SECS: u64 = 30 * 24 * 3600;
/// After this many milliseconds the cookie is renewed, so that daily users never lose it.
const RENEWED_AFTER_MS: u64 = 24 * 3_600_000;
/// Separates this AAD from any other use of the seal.
const AAD_LABEL: &[u8] = b"vestibule person cookie v1";

/// A user, as a hash.
pub(crate) type PersonTag = [u8; TAG_BYTES];

/// The hash of a user. It leaves the edge only sealed. No issuer contains a line break.
pub(crate) fn tag(issuer: &str, subject: &str) -> PersonTag {
    let hash = digest::digest(&digest::SHA256, format!("{issuer}\n{subject}").as_bytes());
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(hash.as_ref());
    tag
}

/// Writes and reads the cookie.
#[derive(Clone)]
pub(crate) struct PersonCookies {
    keys: DerivedKeys,
    name: String,
    secure: bool,
}

impl PersonCookies {
    /// Named after the session cookie, with `__Host-` in front on https.
    #[must_use]
    pub(crate) fn new(settings: &CookieSettings, keys: DerivedKeys) -> Self {
        let prefix = if settings.secure { "__Host-" } else { "" };
        Self {
            keys,
            name: format!("{prefix}{}{SUFFIX}", settings.name),
            secure: settings.secure,
        }
    }

    /// Whether this is the cookie's name. Ignores case, as some frameworks do.
    #[must_use]
    pub(crate) fn owns(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case(&self.name)
    }

    /// The user in a request's cookie; `None` if the cookie is repeated.
    #[must_use]
    pub(crate) fn read(&self, headers: &HeaderMap, now_ms: u64) -> Option<PersonTag> {
        self.open(headers, now_ms, MAX_AGE_SECS * 1000)
    }

    /// The `Set-Cookie` value that names this user as the last one; `None` if the browser has it already.
    #[must_use]
    pub(crate) fn remember(
        &self,
        headers: &HeaderMap,
        person: PersonTag,
        now_ms: u64,
    ) -> Option<HeaderValue> {
        let known = self.open(headers, now_ms, RENEWED_AFTER_MS);
        if known == Some(person) {
            return None;
        }
        let plain = [&now_ms.to_be_bytes()[..], &person].concat();
        let value = self.keys.seal(&[AAD_LABEL, self.name.as_bytes()], &plain);
        set_cookie(&self.name, &value.ok()?, self.attributes(), MAX_AGE_SECS)
    }

    /// The `Set-Cookie` value that deletes the cookie; `None` if the browser sent none.
    #[must_use]
    pub(crate) fn forget(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        pairs(headers).find(|(name, _)| *name == self.name)?;
        set_cookie(&self.name, "", self.attributes(), 0)
    }

    /// The user, if the cookie is younger than `max_age_ms`.
    fn open(&self, headers: &HeaderMap, now_ms: u64, max_age_ms: u64) -> Option<PersonTag> {
        let sealed = only_value(headers, &self.name)?;
        let plain = self.keys.open(&[AAD_LABEL, self.name.as_bytes()], sealed)?;
        let (issued_at_ms, tag) = plain.split_first_chunk::<8>()?;
        let ends_ms = u64::from_be_bytes(*issued_at_ms).saturating_add(max_age_ms);
        tag.try_into().ok().filter(|_| now_ms < ends_ms)
    }

    /// Only our own pages send a form, so the cookie is not needed on navigations from other sites.
    fn attributes(&self) -> &'static str {
        if self.secure {
            "; Path=/; HttpOnly; Secure; SameSite=Strict"
        } else {
            "; Path=/; HttpOnly; SameSite=Strict"
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use chassis::secret::Secret;

    use super::*;
    use crate::sessions::cookies::SameSite;

    const ADA: PersonTag = [1; TAG_BYTES];
    const BOB: PersonTag = [2; TAG_BYTES];

    fn cookies(secrets: &[&str]) -> PersonCookies {
        let settings = CookieSettings {
            name: "session".to_owned(),
            domain: None,
            same_site: SameSite::Lax,
            secure: true,
            partitioned: false,
        };
        let secrets: Vec<_> = secrets
            .iter()
            .map(|secret| Secret::new((*secret).to_owned()))
            .collect();
        PersonCookies::new(&settings, DerivedKeys::new(&secrets))
    }

    fn sent_back(set: &HeaderValue) -> HeaderMap {
        let pair = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::try_from(pair).unwrap());
        headers
    }

    #[test]
    fn the_cookie_says_who_was_here_last_and_to_nobody_else() {
        let cookies = cookies(&["a secret"]);
        let set = cookies.remember(&HeaderMap::new(), ADA, 1_000).unwrap();
        let text = set.to_str().unwrap();
        assert!(
            text.starts_with("__Host-session_person=") && !text.contains("AQEBAQEBAQE"),
            "{text}"
        );
        assert!(
            text.ends_with("; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age=2592000"),
            "{text}"
        );
        let headers = sent_back(&set);
        assert_eq!(cookies.read(&headers, 2_000), Some(ADA));
    }

    #[test]
    fn a_person_is_of_an_issuer() {
        let ada = tag("https://idp.example", "ada");
        assert_ne!(ada, tag("https://other.example", "ada"));
        assert_ne!(ada, tag("https://idp.example", "bob"));
    }

    #[test]
    fn it_is_written_anew_for_another_person_and_once_a_day() {
        let cookies = cookies(&["a secret"]);
        let headers = sent_back(&cookies.remember(&HeaderMap::new(), ADA, 0).unwrap());
        assert!(cookies.remember(&headers, ADA, RENEWED_AFTER_MS - 1).is_none());
        assert!(cookies.remember(&headers, ADA, RENEWED_AFTER_MS).is_some());
        assert!(cookies.remember(&headers, BOB, 1).is_some());
        assert!(
            cookies.read(&headers, MAX_AGE_SECS * 1000).is_none(),
            "it ends here too"
        );
    }

    #[test]
    fn nobody_can_make_one_and_a_rotated_key_still_reads_it() {
        let old = cookies(&["old secret"]);
        let headers = sent_back(&old.remember(&HeaderMap::new(), ADA, 0).unwrap());
        assert!(cookies(&["another"]).read(&headers, 1).is_none());
        let rotated = cookies(&["new secret", "old secret"]);
        assert_eq!(rotated.read(&headers, 1), Some(ADA));
        let plain = URL_SAFE_NO_PAD.encode([0; 40]);
        let mut forged = HeaderMap::new();
        let pair = HeaderValue::try_from(format!("__Host-session_person={plain}")).unwrap();
        forged.insert(header::COOKIE, pair);
        assert!(old.read(&forged, 1).is_none());
    }

    #[test]
    fn it_is_taken_away_where_it_is_there() {
        let cookies = cookies(&["a secret"]);
        assert!(cookies.forget(&HeaderMap::new()).is_none());
        let headers = sent_back(&cookies.remember(&HeaderMap::new(), ADA, 0).unwrap());
        let cleared = cookies.forget(&headers).unwrap();
        assert!(cleared.to_str().unwrap().ends_with("Max-Age=0"));
        assert!(cookies.owns("__HOST-session_person"));
    }
}
