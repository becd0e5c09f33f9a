//! Sessions that are bound to a device (W3C Device Bound Session Credentials). The browser proves its session's key
//! by answering a challenge. A cookie then says so for some minutes.
//!
//! Invariants
//! - Only the edge checks cookie and challenge: each is an expiry, and a signature over it and the session's ID.
//! - A value that is valid for one session, or for one step, is invalid for any other.
//!
//! Deliberately absent: memory of challenges. A copied proof works while its challenge and cookie do.

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::cookies::{self, SessionCookies, SessionId};
use super::keys::{DerivedKeys, Purpose};
use super::metrics::DeviceMetrics;

/// How long a challenge is valid, in milliseconds: time for hardware, network and clock differences.
const CHALLENGE_MS: u64 = 60_000;

/// How long a newly bound session needs no proof: the browser may send requests before it receives the cookie.
const REGISTERED_MS: u64 = 30_000;

/// The browser keeps the cookie a tenth shorter than the edge accepts it, since the clocks of edges differ.
const LEEWAY_PART: u64 = 10;

/// Length of a signature; a longer text is not a signature.
const SIGNATURE_BYTES: usize = 32;

/// Request header of a browser that had to omit the cookie, with the reason ("Secure-Session-Skipped").
const SKIPPED: &str = "secure-session-skipped";

/// The purpose for which a session's ID is sealed, so that one sealed value cannot replace another.
const REGISTRATION: &[u8] = b"registration of a device";
const REFRESH: &[u8] = b"refresh of a device";

/// Which sessions are bound to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceBound {
    /// None; the edge also requires no proof of sessions bound earlier.
    Off,
    /// Sessions of browsers that support it; they are invalid elsewhere.
    Offered,
    /// All: the edge rejects every session that is not bound.
    Required,
}

/// Which sessions are bound, and how long a proof is valid.
#[derive(Clone, Copy, Debug)]
pub struct DeviceBoundSettings {
    /// Which sessions.
    pub mode: DeviceBound,
    /// How long a proof of the session's key is valid, in seconds.
    pub duration_secs: u64,
}

/// What a request proves about its session's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceStanding {
    /// The session is not bound and need not be.
    Unbound,
    /// The request comes from the session's device, according to its cookie.
    Proven,
    /// The session was bound a moment ago, and the browser may have sent the request before.
    JustBound,
    /// The request has no proof, and the browser says that it could not request the cookie.
    Skipped,
    /// The request has no proof.
    Missing,
}

/// Issues and checks the cookie and the challenges.
#[derive(Clone)]
pub(crate) struct DeviceBindings {
    keys: DerivedKeys,
    /// The cookie's name.
    pub(crate) name: String,
    attributes: String,
    /// Which sessions are bound.
    pub(crate) settings: DeviceBoundSettings,
    /// Counts the results of proofs.
    pub(crate) metrics: DeviceMetrics,
}

impl DeviceBindings {
    /// The cookie has the attributes of the session cookie.
    #[must_use]
    pub(crate) fn new(
        keys: DerivedKeys,
        cookies: &SessionCookies,
        settings: DeviceBoundSettings,
        metrics: DeviceMetrics,
    ) -> Self {
        Self {
            keys,
            name: cookies.proof_name.clone(),
            attributes: cookies.attributes(),
            settings,
            metrics,
        }
    }

    /// The cookie's attributes without its lifetime, for `credentials` in session instructions.
    pub(crate) fn attributes(&self) -> &str {
        self.attributes.trim_start_matches("; ")
    }

    /// The `Set-Cookie` value that lets a browser use its session for `duration_secs`.
    pub(crate) fn cookie(&self, id: &SessionId, now_ms: u64) -> Option<HeaderValue> {
        let duration_secs = self.settings.duration_secs;
        let age = duration_secs.saturating_sub(duration_secs / LEEWAY_PART);
        let until_ms = now_ms.saturating_add(duration_secs.saturating_mul(1_000));
        let value = self.signed(Purpose::DeviceCookie, id, until_ms);
        cookies::set_cookie(&self.name, &value, &self.attributes, age)
    }

    /// The `Set-Cookie` value that removes the cookie.
    pub(crate) fn clear(&self) -> Option<HeaderValue> {
        cookies::set_cookie(&self.name, "", &self.attributes, 0)
    }

    /// The challenge of a registration. It holds the sealed session ID, because a browser that returns from
    /// its provider omits `SameSite` cookies from the registration.
    pub(crate) fn invitation(&self, id: &SessionId, now_ms: u64) -> Option<String> {
        let until_ms = now_ms.saturating_add(CHALLENGE_MS);
        let plain = [&until_ms.to_be_bytes()[..], &id.to_bytes()].concat();
        self.keys.seal(&[REGISTRATION], &plain).ok()
    }

    /// The session of a registration challenge that is still valid.
    pub(crate) fn open_invitation(&self, challenge: &str, now_ms: u64) -> Option<SessionId> {
        let plain = self.keys.open(&[REGISTRATION], challenge)?;
        let (until_ms, id) = plain.split_first_chunk::<8>()?;
        let is_there = now_ms < u64::from_be_bytes(*until_ms);
        is_there.then(|| id.try_into().ok().map(SessionId::from_bytes))?
    }

    /// The sealed session ID in the refresh address: a refresh that another site causes has no cookies.
    pub(crate) fn address(&self, id: &SessionId) -> Option<String> {
        self.keys.seal(&[REFRESH], &id.to_bytes()).ok()
    }

    /// The session of such an address, and whether the newest secret sealed it. If not, the browser needs a
    /// new address before the old secret is removed.
    pub(crate) fn open_address(&self, sealed: &str) -> Option<(SessionId, bool)> {
        let (plain, is_lasting) = self.keys.open_telling_age(&[REFRESH], sealed)?;
        let id = plain.as_slice().try_into().ok().map(SessionId::from_bytes)?;
        Some((id, is_lasting))
    }

    /// A challenge for a refresh of a session.
    pub(crate) fn challenge(&self, id: &SessionId, now_ms: u64) -> String {
        let until_ms = now_ms.saturating_add(CHALLENGE_MS);
        self.signed(Purpose::DeviceChallenge, id, until_ms)
    }

    /// Whether this is a valid challenge for a refresh of that session.
    pub(crate) fn is_challenge(&self, challenge: &str, id: &SessionId, now_ms: u64) -> bool {
        self.is_good(Purpose::DeviceChallenge, id, challenge, now_ms)
    }

    /// What a request proves about a session that was bound at `bound_at`, if it was.
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

    /// Whether a request carries the valid cookie of that session.
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

/// Whether a browser reports that it skipped this session's refresh, or an unnamed session's.
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
#[path = "device_binding_tests.rs"]
mod tests;
