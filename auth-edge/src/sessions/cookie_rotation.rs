//! Decides when the edge renews the cookie of an unbound session, and which generation of the cookie is valid.
//!
//! A generation is six random bytes in the cookie, next to its parent's. The edge accepts the current generation, and
//! during [`GRACE`] its parent and siblings. The session service judges all others (`RotateCookie`).
//!
//! Invariants
//! - Each use of the current generation gets a new offer once due, and no offer repeats. So unused offers
//!   block no other browser, and browsers that share a cookie receive different generations.
//! - No response repeats an earlier generation or sends one long after it was made: a late response undoes
//!   nothing.
//! - A generation takes effect on its first use: a lost response costs nothing.

use std::time::Duration;

use chassis::random;
use session_proto::timestamp;
use session_proto::v1;

/// Bytes of a generation's ID.
pub(crate) const ID_BYTES: usize = 6;

/// How long a replaced generation stays valid: requests and responses may still be in transit.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// How long a new generation may wait for the head of its response: after an upload, a newer one may be in
/// use. `GRACE` must cover this time and both transits.
pub(super) const HELD_MS: u64 = 15_000;

/// A generation of a session's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    /// Its random ID.
    pub(crate) id: [u8; ID_BYTES],
    /// Its parent: the generation it replaces; zeros for the first one.
    pub(crate) parent: [u8; ID_BYTES],
}

impl Generation {
    /// The bytes that a cookie holds.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.id, self.parent].concat()
    }

    /// Parses these bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (id, parent) = bytes.split_first_chunk()?;
        Some(Self {
            id: *id,
            parent: parent.try_into().ok()?,
        })
    }
}

/// The current generation according to the session service; empty before the first rotation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrentGeneration<'a> {
    /// Its ID.
    id: &'a [u8],
    /// The ID of its parent.
    parent: &'a [u8],
    /// Since when, in milliseconds since the Unix epoch.
    since_ms: u64,
}

impl<'a> CurrentGeneration<'a> {
    /// The current generation of a session.
    pub(crate) fn of(session: &'a v1::Session) -> Self {
        let counts = session.cookie_generation.as_ref();
        let since = counts.and_then(|counts| counts.since.as_ref());
        let since = since.or(session.created_at.as_ref());
        Self {
            id: counts.map_or(&[], |counts| &counts.id),
            parent: counts.map_or(&[], |counts| &counts.parent),
            since_ms: since.map_or(0, timestamp::to_ms),
        }
    }

    fn is(self, shown: Option<Generation>) -> bool {
        self.id == id_of(shown.as_ref())
    }

    /// Whether a presented generation is valid without a call to the session service.
    pub(crate) fn accepts(self, shown: Option<Generation>, now_ms: u64) -> bool {
        let is_beside = |shown: Generation| generation_bytes(&shown.parent) == self.parent;
        let is_before_or_beside = || id_of(shown.as_ref()) == self.parent || shown.is_some_and(is_beside);
        let has_rotated = !self.id.is_empty();
        let grace_ms = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
        let in_grace = now_ms < self.since_ms.saturating_add(grace_ms);
        self.is(shown) || (has_rotated && in_grace && is_before_or_beside())
    }
}

/// The first generation has no bytes.
fn id_of(generation: Option<&Generation>) -> &[u8] {
    generation.map_or(&[], |generation| &generation.id)
}

/// The bytes of a generation's ID; empty for the first one.
pub(super) fn generation_bytes(id: &[u8; ID_BYTES]) -> &[u8] {
    if *id == [0; ID_BYTES] { &[] } else { id }
}

/// When cookies rotate.
#[derive(Clone, Copy, Debug)]
pub struct CookieRotation {
    /// How long a generation is current before the next one is offered, in milliseconds.
    interval_ms: u64,
}

impl CookieRotation {
    /// Rotates cookies whose generation is current for longer than this.
    pub(crate) fn every(interval_secs: u64) -> Self {
        Self {
            interval_ms: interval_secs.saturating_mul(1_000),
        }
    }

    /// The generation to offer to a browser that presents `shown`, if one is due.
    pub(crate) fn next(
        self,
        current: CurrentGeneration<'_>,
        shown: Option<Generation>,
        now_ms: u64,
    ) -> Option<Generation> {
        let is_due = now_ms >= current.since_ms.saturating_add(self.interval_ms);
        if !current.is(shown) || !is_due {
            return None;
        }
        Some(Generation {
            id: random::bytes().ok()?,
            parent: shown.map_or([0; ID_BYTES], |shown| shown.id),
        })
    }
}

#[cfg(test)]
#[path = "cookie_rotation_tests.rs"]
mod tests;
