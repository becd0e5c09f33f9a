//! A cookie that outlives the session: who saw a guarded page here last, so that a form which meets a dead session is kept for
//! that person and for nobody else.
//!
//! Invariants
//! - It holds a keyed hash of issuer and subject, sealed: it names nobody, and nobody can make one.
//! - It gives access to nothing: a person is compared with it, never taken from it.
//! - Signing out in this browser takes it away.
//!
//! Deliberately absent: `Domain`; a form belongs to the host it was sent to.

use axum::http::{HeaderMap, HeaderValue};

use crate::sessions::cookies::{CookieSettings, only_value, pairs, set_cookie};
use crate::sessions::keys::{DerivedKeys, Purpose};

/// What is put behind the session cookie's name.
const SUFFIX: &str = "_person";
/// Bytes of the hash: HMAC-SHA256.
const TAG_BYTES: usize = 32;
/// How long it is kept, in seconds: a page with a form may stay open for as long as a session lasts, and longer.
const MAX_AGE_SECS: u64 = 30 * 24 * 3600;
/// After this many milliseconds it is written anew, so that its time begins again for who comes every day.
const RENEWED_AFTER_MS: u64 = 24 * 3_600_000;
/// Separates this AAD from any other use of the seal.
const AAD_LABEL: &[u8] = b"vestibule person cookie v1";

/// A person, as a keyed hash: the same for the same issuer and subject while the key is the same.
pub(crate) type PersonTag = [u8; TAG_BYTES];

/// Writes and reads the cookie.
#[derive(Clone)]
pub(crate) struct PersonCookies {
    keys: DerivedKeys,
    name: String,
    secure: bool,
}

impl PersonCookies {
    /// Named after the session cookie: `__Host-` before it on https.
    #[must_use]
    pub(crate) fn new(settings: &CookieSettings, keys: DerivedKeys) -> Self {
        let prefix = if settings.secure { "__Host-" } else { "" };
        Self {
            keys,
            name: format!("{prefix}{}{SUFFIX}", settings.name),
            secure: settings.secure,
        }
    }

    /// Whether a cookie of this name is this one. Some frameworks compare names without regard to case.
    #[must_use]
    pub(crate) fn owns(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case(&self.name)
    }

    /// The hash of a person, by the first key.
    #[must_use]
    pub(crate) fn tag(&self, issuer: &str, subject: &str) -> Option<PersonTag> {
        let tag = self
            .keys
            .sign(Purpose::Person, &[issuer.as_bytes(), subject.as_bytes()]);
        tag.try_into().ok()
    }

    /// Whether it is the hash of this person, by any key of the ring.
    #[must_use]
    pub(crate) fn is(&self, tag: &PersonTag, issuer: &str, subject: &str) -> bool {
        let person = [issuer.as_bytes(), subject.as_bytes()];
        self.keys.verify(Purpose::Person, &person, tag)
    }

    /// The person of a request's one such cookie.
    #[must_use]
    pub(crate) fn read(&self, headers: &HeaderMap, now_ms: u64) -> Option<PersonTag> {
        let (issued_at_ms, tag) = self.open(headers)?;
        (now_ms < issued_at_ms.saturating_add(MAX_AGE_SECS * 1000)).then_some(tag)
    }

    /// The `Set-Cookie` value that makes this person the last one here; none while the browser says so already.
    #[must_use]
    pub(crate) fn remember(
        &self,
        headers: &HeaderMap,
        (issuer, subject): (&str, &str),
        now_ms: u64,
    ) -> Option<HeaderValue> {
        if let Some((issued_at_ms, tag)) = self.open(headers)
            && now_ms < issued_at_ms.saturating_add(RENEWED_AFTER_MS)
            && self.is(&tag, issuer, subject)
        {
            return None;
        }
        let tag = self.tag(issuer, subject)?;
        let plain = [&now_ms.to_be_bytes()[..], &tag].concat();
        let value = self.keys.seal(&[AAD_LABEL, self.name.as_bytes()], &plain);
        set_cookie(&self.name, &value.ok()?, self.attributes(), MAX_AGE_SECS)
    }

    /// The `Set-Cookie` value that takes the cookie away; none where there is none.
    #[must_use]
    pub(crate) fn forget(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        pairs(headers).find(|(name, _)| *name == self.name)?;
        set_cookie(&self.name, "", self.attributes(), 0)
    }

    fn open(&self, headers: &HeaderMap) -> Option<(u64, PersonTag)> {
        let sealed = only_value(headers, &self.name)?;
        let plain = self.keys.open(&[AAD_LABEL, self.name.as_bytes()], sealed)?;
        let (issued_at_ms, tag) = plain.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*issued_at_ms), tag.try_into().ok()?))
    }

    /// A form is sent by our own pages alone, so no other site's navigation has to bring it.
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

    const ADA: (&str, &str) = ("https://idp.example", "ada");
    const BOB: (&str, &str) = ("https://idp.example", "bob");

    fn cookies(secrets: &[&str]) -> PersonCookies {
        let settings = CookieSettings {
            name: "session".to_owned(),
            domain: None,
            same_site: SameSite::Lax,
            secure: true,
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
            text.starts_with("__Host-session_person=") && !text.contains("ada"),
            "{text}"
        );
        assert!(
            text.ends_with("; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age=2592000"),
            "{text}"
        );
        let headers = sent_back(&set);
        let tag = cookies.read(&headers, 2_000).unwrap();
        assert!(cookies.is(&tag, ADA.0, ADA.1) && !cookies.is(&tag, BOB.0, BOB.1));
        assert!(
            !cookies.is(&tag, "https://other.example", ADA.1),
            "a person is of an issuer"
        );
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
        let tag = rotated.read(&headers, 1).unwrap();
        assert!(rotated.is(&tag, ADA.0, ADA.1));
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
