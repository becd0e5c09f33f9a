//! Sessions that are bound to a device (W3C Device Bound Session Credentials): the cookie that says for some minutes that the browser has
//! proved to hold its session's key, and the challenges it proves that with.
//!
//! Invariants
//! - Both are judged by the edge alone: an expiry and a signature over it and the session's secret ID.
//! - What is good for one session, or for one step, is worth nothing for another.
//!
//! Deliberately absent: memory of challenges. A proof copied from the wire is good for as long as its challenge, and needs the session cookie beside it.

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

/// Writes and judges the cookie and the challenges.
#[derive(Clone)]
pub(crate) struct DeviceBindings {
    keys: DerivedKeys,
    /// The cookie's name.
    pub(crate) name: String,
    attributes: String,
    /// Which sessions are bound.
    pub(crate) settings: DeviceBoundSettings,
    /// Counts what became of proofs.
    pub(crate) metrics: DeviceMetrics,
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
            name: cookies.proof_name.clone(),
            attributes: cookies.attributes(),
            settings,
            metrics,
        }
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
        cookies::set_cookie(&self.name, &value, &self.attributes, age)
    }

    /// The `Set-Cookie` value that takes the cookie away.
    pub(crate) fn clear(&self) -> Option<HeaderValue> {
        cookies::set_cookie(&self.name, "", &self.attributes, 0)
    }

    /// The challenge of a registration. It holds the session, sealed: a browser that comes back from its provider leaves `SameSite` cookies out of
    /// the registration.
    pub(crate) fn invitation(&self, id: &SessionId, now_ms: u64) -> Option<String> {
        let until_ms = now_ms.saturating_add(CHALLENGE_MS);
        let plain = [&until_ms.to_be_bytes()[..], &id.to_bytes()].concat();
        self.keys.seal(&[REGISTRATION], &plain).ok()
    }

    /// The session that a challenge of a registration was made for, if it may still be answered.
    pub(crate) fn invited(&self, challenge: &str, now_ms: u64) -> Option<SessionId> {
        let plain = self.keys.open(&[REGISTRATION], challenge)?;
        let (until_ms, id) = plain.split_first_chunk::<8>()?;
        let is_there = now_ms < u64::from_be_bytes(*until_ms);
        is_there.then(|| id.try_into().ok().map(SessionId::from_bytes))?
    }

    /// What names a session in the address of its refresh, which comes without cookies where another site has led here.
    pub(crate) fn address(&self, id: &SessionId) -> Option<String> {
        self.keys.seal(&[REFRESH], &id.to_bytes()).ok()
    }

    /// The session of such an address, and whether the newest secret sealed it: otherwise the browser needs another one before the old
    /// secret is gone.
    pub(crate) fn addressed(&self, sealed: &str) -> Option<(SessionId, bool)> {
        let (plain, is_lasting) = self.keys.open_telling_age(&[REFRESH], sealed)?;
        let id = plain.as_slice().try_into().ok().map(SessionId::from_bytes)?;
        Some((id, is_lasting))
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
#[path = "device_binding_tests.rs"]
mod tests;
