//! Sessions that are bound to a device (W3C Device Bound Session Credentials): the cookie that says for some minutes that the browser has
//! proved to hold its session's key, and the challenges it proves that with.
//!
//! Invariants
//! - Both are judged by the edge alone: an expiry and a signature over it and the session's secret ID.
//! - What is good for one session, or for one step, is worth nothing for another.
//!
//! Deliberately absent: memory of challenges. A proof copied from the wire is good for as long as its challenge, and needs the session cookie beside it.

use std::fmt;

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::cookies::{self, SessionCookies, SessionId};
use super::keys::{DerivedKeys, Purpose};
use super::metrics::DeviceMetrics;

/// How long a challenge may be answered, in milliseconds: a browser asks its hardware and the network, and a clock here may be off.
const CHALLENGE_MS: u64 = 60_000;

/// For so long after its registration a bound session is served without proof: what the browser sent before the answer reached it is honest.
const REGISTERED_MS: u64 = 30_000;

/// The part of its life that a cookie is good beyond what the browser is told: the clocks of two edges are not the same.
const LEEWAY_PART: u64 = 10;

/// Room for a signature: a longer one is none.
const SIGNATURE_BYTES: usize = 32;

/// Request header of a browser that had to leave the cookie out, and says why (section "Secure-Session-Skipped").
const SKIPPED: &str = "secure-session-skipped";

/// What the ID of a session is sealed for, so that one is no other.
const REGISTRATION: &[u8] = b"registration of a device";
const REFRESH: &[u8] = b"refresh of a device";

/// What sessions are bound to a device for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceBound {
    /// Nothing: none is bound, and nothing is asked of those that are.
    Off,
    /// Those of browsers that can are worth nothing elsewhere.
    Offered,
    /// No other session is worth anything.
    Required,
}

/// Which sessions are bound, and how long a browser is believed.
#[derive(Clone, Copy, Debug)]
pub struct DeviceBoundSettings {
    /// Which sessions.
    pub mode: DeviceBound,
    /// How long somebody is believed who has proved to hold its session's key, in seconds.
    pub duration_secs: u64,
}

/// What a request proves of its session's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceStanding {
    /// The session is bound to none, and need not be.
    Unbound,
    /// The request comes from the session's device, as far as its cookie says.
    Proven,
    /// The session was bound a moment ago, and the request may have been sent before.
    JustBound,
    /// It proves nothing, and the browser says that it could not ask for the cookie.
    Skipped,
    /// It proves nothing.
    Missing,
}

/// Which session an address of a refresh is for.
pub(crate) struct Addressed {
    /// The session.
    pub(crate) id: SessionId,
    /// Whether it is sealed with the newest secret: otherwise the browser needs another one before the old secret is gone.
    pub(crate) is_lasting: bool,
}

/// Writes and judges the cookie and the challenges.
#[derive(Clone)]
pub(crate) struct DeviceBindings {
    keys: DerivedKeys,
    name: String,
    attributes: String,
    settings: DeviceBoundSettings,
    metrics: DeviceMetrics,
}

impl fmt::Debug for DeviceBindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBindings")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl DeviceBindings {
    /// The cookie stands beside the session's, with its attributes.
    #[must_use]
    pub(crate) fn new(
        keys: DerivedKeys,
        cookies: &SessionCookies,
        settings: DeviceBoundSettings,
        metrics: DeviceMetrics,
    ) -> Self {
        Self {
            keys,
            name: cookies.name_of_proof().to_owned(),
            attributes: cookies.attributes(),
            settings,
            metrics,
        }
    }

    /// Which sessions are bound.
    pub(crate) fn mode(&self) -> DeviceBound {
        self.settings.mode
    }

    /// Counts what became of proofs.
    pub(crate) fn metrics(&self) -> &DeviceMetrics {
        &self.metrics
    }

    /// The cookie's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The cookie's attributes but its lifetime, as `credentials` of session instructions name them.
    pub(crate) fn attributes(&self) -> &str {
        self.attributes.trim_start_matches("; ")
    }

    /// The `Set-Cookie` value that lets a browser use its session for a while.
    pub(crate) fn cookie(&self, id: &SessionId, now_ms: u64) -> Option<HeaderValue> {
        let duration_secs = self.settings.duration_secs;
        let age = duration_secs.saturating_sub(duration_secs / LEEWAY_PART);
        let until_ms = now_ms.saturating_add(duration_secs.saturating_mul(1_000));
        let value = self.signed(Purpose::DeviceCookie, id, until_ms);
        let (name, attributes) = (&self.name, &self.attributes);
        let mut value = HeaderValue::try_from(format!("{name}={value}{attributes}; Max-Age={age}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The `Set-Cookie` value that takes the cookie away.
    pub(crate) fn clear(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{}={}; Max-Age=0", self.name, self.attributes)).ok()
    }

    /// The challenge of a registration. It holds the session, sealed: a browser that comes back from its provider leaves `SameSite` cookies out of
    /// the registration.
    pub(crate) fn invitation(&self, id: &SessionId, now_ms: u64) -> Option<String> {
        let until_ms = now_ms.saturating_add(CHALLENGE_MS);
        self.sealed(
            REGISTRATION,
            &[&until_ms.to_be_bytes()[..], &id.to_bytes()].concat(),
        )
    }

    /// The session that a challenge of a registration was made for, if it may still be answered.
    pub(crate) fn invited(&self, challenge: &str, now_ms: u64) -> Option<SessionId> {
        let plain = self.opened(REGISTRATION, challenge)?;
        let (until_ms, id) = plain.split_first_chunk::<8>()?;
        let is_there = now_ms < u64::from_be_bytes(*until_ms);
        is_there.then(|| id.try_into().ok().map(SessionId::from_bytes))?
    }

    /// What names a session in the address of its refresh, which comes without cookies where another site has led here.
    pub(crate) fn address(&self, id: &SessionId) -> Option<String> {
        self.sealed(REFRESH, &id.to_bytes())
    }

    /// The session of such an address.
    pub(crate) fn addressed(&self, sealed: &str) -> Option<Addressed> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (plain, is_lasting) = self.keys.open_telling_age(&[REFRESH], &sealed)?;
        let id = plain.as_slice().try_into().ok().map(SessionId::from_bytes)?;
        Some(Addressed { id, is_lasting })
    }

    /// A challenge for a refresh of a session.
    pub(crate) fn challenge(&self, id: &SessionId, now_ms: u64) -> String {
        let until_ms = now_ms.saturating_add(CHALLENGE_MS);
        self.signed(Purpose::DeviceChallenge, id, until_ms)
    }

    /// Whether this is a challenge for a refresh of that session which may still be answered.
    pub(crate) fn is_challenge(&self, challenge: &str, id: &SessionId, now_ms: u64) -> bool {
        self.is_good(Purpose::DeviceChallenge, id, challenge, now_ms)
    }

    fn sealed(&self, what: &[u8], plain: &[u8]) -> Option<String> {
        self.keys
            .seal(&[what], plain)
            .ok()
            .map(|sealed| URL_SAFE_NO_PAD.encode(sealed))
    }

    fn opened(&self, what: &[u8], text: &str) -> Option<Vec<u8>> {
        self.keys.open(&[what], &URL_SAFE_NO_PAD.decode(text).ok()?)
    }

    /// What a request proves of a session that was bound then, if it was.
    pub(super) fn standing(
        &self,
        headers: &HeaderMap,
        (id, handle): (&SessionId, &str),
        bound_at_ms: Option<u64>,
        now_ms: u64,
    ) -> DeviceStanding {
        let required = match self.settings.mode {
            DeviceBound::Off => return DeviceStanding::Unbound,
            DeviceBound::Offered => false,
            DeviceBound::Required => true,
        };
        let Some(bound_at_ms) = bound_at_ms else {
            return if required {
                DeviceStanding::Missing
            } else {
                DeviceStanding::Unbound
            };
        };
        if self.is_proven(headers, id, now_ms) {
            DeviceStanding::Proven
        } else if !required && now_ms < bound_at_ms.saturating_add(REGISTERED_MS) {
            DeviceStanding::JustBound
        } else if is_skipped(headers, handle) {
            DeviceStanding::Skipped
        } else {
            DeviceStanding::Missing
        }
    }

    /// Whether a request carries the cookie of that session.
    pub(crate) fn is_proven(&self, headers: &HeaderMap, id: &SessionId, now_ms: u64) -> bool {
        let cookie = cookies::only_value(headers, &self.name);
        cookie.is_some_and(|value| self.is_good(Purpose::DeviceCookie, id, value, now_ms))
    }

    /// An expiry and a signature over it and the session.
    fn signed(&self, purpose: Purpose, id: &SessionId, until_ms: u64) -> String {
        let until = until_ms.to_string();
        let signature = self
            .keys
            .sign(purpose, &[id.expose().as_bytes(), until.as_bytes()]);
        format!("{until}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn is_good(&self, purpose: Purpose, id: &SessionId, value: &str, now_ms: u64) -> bool {
        let Some((until, signature)) = value.split_once('.') else {
            return false;
        };
        let mut bytes = [0; SIGNATURE_BYTES];
        let Ok(length) = URL_SAFE_NO_PAD.decode_slice(signature, &mut bytes) else {
            return false;
        };
        let is_there = until.parse::<u64>().is_ok_and(|until_ms| now_ms < until_ms);
        is_there
            && self.keys.verify(
                purpose,
                &[id.expose().as_bytes(), until.as_bytes()],
                &bytes[..length],
            )
    }
}

/// Whether a browser says that it could not ask for the cookie of this session, or says not of which. Another one's may still be registered.
fn is_skipped(headers: &HeaderMap, handle: &str) -> bool {
    let lines = headers
        .get_all(SKIPPED)
        .iter()
        .filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .any(|item| match item.split_once("session_identifier=") {
            None => true,
            Some((_, named)) => named.trim_start_matches('"').starts_with(handle),
        })
}

#[cfg(test)]
mod tests {
    use chassis::secret::Secret;

    use super::*;
    use crate::sessions::cookies::{CookieSettings, SameSite};

    const HANDLE: &str = "00112233445566778899aabbccddeeff";

    const NOW: u64 = 1_800_000_000_000;

    fn bindings() -> DeviceBindings {
        bindings_of(DeviceBound::Offered)
    }

    fn bindings_of(mode: DeviceBound) -> DeviceBindings {
        let settings = CookieSettings {
            name: "session".to_owned(),
            domain: None,
            same_site: SameSite::Lax,
            transient: false,
            secure: true,
        };
        let keys = DerivedKeys::new(&[Secret::new("a secret that is long enough".to_owned())]);
        let bound = DeviceBoundSettings {
            mode,
            duration_secs: 600,
        };
        let metrics = DeviceMetrics::new(&prometheus::Registry::new()).unwrap();
        DeviceBindings::new(keys.clone(), &SessionCookies::new(settings, keys), bound, metrics)
    }

    fn session(digit: char) -> SessionId {
        SessionId::parse(&digit.to_string().repeat(32)).unwrap()
    }

    fn request(cookie: &HeaderValue) -> HeaderMap {
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("cookie", HeaderValue::from_str(pair).unwrap());
        headers
    }

    #[test]
    fn the_cookie_is_good_for_its_session_and_its_time() {
        let (bindings, one, other) = (bindings(), session('1'), session('2'));
        let cookie = bindings.cookie(&one, NOW).unwrap();
        let text = cookie.to_str().unwrap();
        assert!(
            text.starts_with("__Host-session_bound=") && text.ends_with("; Max-Age=540"),
            "{text}"
        );
        assert_eq!(bindings.attributes(), "Path=/; HttpOnly; Secure; SameSite=Lax");
        let headers = request(&cookie);
        let standing = |id: &SessionId, now_ms| bindings.standing(&headers, (id, HANDLE), Some(0), now_ms);
        let end = NOW + 600_000;
        assert_eq!(standing(&one, end - 1), DeviceStanding::Proven);
        assert_eq!(standing(&one, end), DeviceStanding::Missing);
        assert_eq!(standing(&other, NOW), DeviceStanding::Missing);
        assert_eq!(
            bindings.standing(&headers, (&other, HANDLE), None, NOW),
            DeviceStanding::Unbound
        );
    }

    #[test]
    fn without_it_there_is_a_moment_after_the_registration_and_a_word_for_browsers_that_could_not() {
        let (bindings, id) = (bindings(), session('1'));
        let mut headers = HeaderMap::new();
        let standing =
            |headers: &HeaderMap, now_ms| bindings.standing(headers, (&id, HANDLE), Some(NOW), now_ms);
        assert_eq!(
            standing(&headers, NOW + REGISTERED_MS - 1),
            DeviceStanding::JustBound
        );
        assert_eq!(standing(&headers, NOW + REGISTERED_MS), DeviceStanding::Missing);
        let of = |handle: &str| format!("quota_exceeded;session_identifier=\"{handle}\"");
        let another = of("ffeeddccbbaa99887766554433221100");
        for (said, expected) in [
            ("unreachable".to_owned(), DeviceStanding::Skipped),
            (of(HANDLE), DeviceStanding::Skipped),
            (format!("{another}, {}", of(HANDLE)), DeviceStanding::Skipped),
            (another, DeviceStanding::Missing),
        ] {
            headers.insert(SKIPPED, HeaderValue::from_str(&said).unwrap());
            assert_eq!(standing(&headers, NOW + REGISTERED_MS), expected, "{said}");
        }
    }

    #[test]
    fn where_it_is_required_nothing_else_counts_and_where_it_is_off_nothing_is_asked() {
        let id = session('1');
        let nothing = HeaderMap::new();
        let required = bindings_of(DeviceBound::Required);
        let proof = request(&required.cookie(&id, NOW).unwrap());
        for (headers, bound_at, standing) in [
            (&nothing, None, DeviceStanding::Missing),
            (&nothing, Some(NOW), DeviceStanding::Missing),
            (&proof, None, DeviceStanding::Missing),
            (&proof, Some(NOW), DeviceStanding::Proven),
        ] {
            assert_eq!(required.standing(headers, (&id, HANDLE), bound_at, NOW), standing);
        }
        let off = bindings_of(DeviceBound::Off);
        assert_eq!(
            off.standing(&nothing, (&id, HANDLE), Some(0), NOW),
            DeviceStanding::Unbound
        );
    }

    #[test]
    fn a_challenge_is_for_one_session_and_no_cookie() {
        let (bindings, one, other) = (bindings(), session('1'), session('2'));
        let challenge = bindings.challenge(&one, NOW);
        assert!(bindings.is_challenge(&challenge, &one, NOW + CHALLENGE_MS - 1));
        assert!(!bindings.is_challenge(&challenge, &one, NOW + CHALLENGE_MS));
        assert!(!bindings.is_challenge(&challenge, &other, NOW));
        let cookie = HeaderValue::from_str(&format!("__Host-session_bound={challenge}")).unwrap();
        assert_eq!(
            bindings.standing(&request(&cookie), (&one, HANDLE), Some(0), NOW),
            DeviceStanding::Missing
        );
        for odd in [
            "",
            ".",
            "1.",
            "99999999999999.AA",
            &challenge[1..],
            &challenge[..20],
        ] {
            assert!(!bindings.is_challenge(odd, &one, NOW), "{odd}");
        }
    }

    #[test]
    fn an_invitation_names_its_session_for_a_while_and_an_address_for_ever() {
        let (bindings, one) = (bindings(), session('1'));
        let (invitation, address) = (
            bindings.invitation(&one, NOW).unwrap(),
            bindings.address(&one).unwrap(),
        );
        let exposed = |id: Option<SessionId>| id.map(|id| id.expose().to_owned());
        assert_eq!(
            exposed(bindings.invited(&invitation, NOW + CHALLENGE_MS - 1)),
            exposed(Some(one.clone()))
        );
        assert_eq!(exposed(bindings.invited(&invitation, NOW + CHALLENGE_MS)), None);
        assert_eq!(
            exposed(bindings.addressed(&address).map(|addressed| addressed.id)),
            exposed(Some(one))
        );
        assert_eq!(
            exposed(bindings.addressed(&invitation).map(|addressed| addressed.id)),
            None
        );
        assert_eq!(exposed(bindings.invited(&address, NOW)), None);
        assert_eq!(exposed(bindings.invited("", NOW)), None);
    }
}
