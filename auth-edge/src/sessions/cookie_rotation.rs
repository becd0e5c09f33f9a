//! When a session's cookie is given anew, for browsers that bind no key to it, and which generation of it counts.
//!
//! A generation is six random bytes in the cookie, with those of the one it was given for. The session service knows the one that
//! counts (`RotateCookie`); what is shown and fits it is judged here, anything else there.
//!
//! Invariants
//! - Every use of the one that counts is offered a new one as soon as that is due, and never the same one twice: a client that takes
//!   offers and uses none keeps none from the other browsers, and two browsers that hold one cookie come by different ones.
//! - No answer gives a generation again that was given before, and none gives one long after it was made, so that one that is late takes
//!   nothing back.
//! - Until it is used, nothing has happened: an answer that is lost costs nothing.

use std::time::Duration;

use chassis::random;
use session_proto::timestamp;
use session_proto::v1;

/// Bytes that tell a generation from the others.
pub(crate) const ID_BYTES: usize = 6;

/// For so long a generation is good after another one has taken its place: a request that was sent before arrives later, and so does an answer.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// For so long a new one may wait for the head of its answer: an upload's could put it over one that has long been used. The grace has
/// to hold that, and the ways of a request and an answer.
pub(super) const HELD_MS: u64 = 15_000;

/// A generation of a session's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    /// Which one.
    pub(crate) id: [u8; ID_BYTES],
    /// The one it was given for; zeros for the first one.
    pub(crate) parent: [u8; ID_BYTES],
}

impl Generation {
    /// As a cookie holds it.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.id, self.parent].concat()
    }

    /// Read back.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (id, parent) = bytes.split_first_chunk()?;
        Some(Self {
            id: *id,
            parent: parent.try_into().ok()?,
        })
    }
}

/// The generation that counts, as the session service tells it; empty before the first rotation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting<'a> {
    /// Which one.
    id: &'a [u8],
    /// The one before.
    parent: &'a [u8],
    /// Since when, in milliseconds since the Unix epoch.
    since_ms: u64,
}

impl<'a> Counting<'a> {
    /// Of a session.
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

    /// Whether a generation that is shown is good as far as this says: nobody has to be asked.
    pub(crate) fn takes(self, shown: Option<Generation>, now_ms: u64) -> bool {
        let is_beside = |shown: Generation| given(&shown.parent) == self.parent;
        let is_before_or_beside = || id_of(shown.as_ref()) == self.parent || shown.is_some_and(is_beside);
        let has_taken_place = !self.id.is_empty();
        let grace_ms = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
        let in_grace = now_ms < self.since_ms.saturating_add(grace_ms);
        self.is(shown) || (has_taken_place && in_grace && is_before_or_beside())
    }
}

/// The first generation has no bytes.
fn id_of(generation: Option<&Generation>) -> &[u8] {
    generation.map_or(&[], |generation| &generation.id)
}

/// The bytes of a generation; none of the first one.
pub(super) fn given(id: &[u8; ID_BYTES]) -> &[u8] {
    if *id == [0; ID_BYTES] { &[] } else { id }
}

/// When cookies rotate.
#[derive(Clone, Copy, Debug)]
pub struct CookieRotation {
    /// How long a generation counts before another one is given, in milliseconds.
    interval_ms: u64,
}

impl CookieRotation {
    /// Rotates cookies that count for longer than this.
    pub(crate) fn every(interval_secs: u64) -> Self {
        Self {
            interval_ms: interval_secs.saturating_mul(1_000),
        }
    }

    /// The generation to offer to a browser that shows `shown`, if one is due.
    pub(crate) fn next(
        self,
        counting: Counting<'_>,
        shown: Option<Generation>,
        now_ms: u64,
    ) -> Option<Generation> {
        let is_due = now_ms >= counting.since_ms.saturating_add(self.interval_ms);
        if !counting.is(shown) || !is_due {
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
