//! Generations of a session's cookie, for browsers that bind no key: who uses one after another has taken its place has a copy.
//!
//! Whoever answers browsers gives a cookie of a new generation now and then. It counts once it is **used**: an answer that is lost changes
//! nothing. Each answer gives another one, so that two browsers that hold the same cookie come by different ones. A browser may be given
//! several at once, keeps the one that arrives last, and its requests overtake each other: for a grace after the first of them was used all that were
//! given for the same one are good, and the one before as well. What is used after the grace is what a browser has kept; if that is two, one is a copy.
//!
//! Invariants
//! - A generation is good as long as none that was given for it, or beside it, has been used, and for a grace after that.
//! - All times are the service's. Another generation takes the place only after the grace, so that an edge whose clock is ahead, and gives
//!   the next one too early, signs no user out.
//! - Of those beside each other one is good after the grace: the one that was used first at all, or instead the first that is used then.
//!
//! Deliberately absent: what a cookie looks like, and when a new one is given.

use prost::Message;

/// Bytes that tell a generation from the others.
pub(crate) const ID_BYTES: usize = 6;

/// Tells a generation from the others; empty for the first one.
pub type GenerationId = Vec<u8>;

/// The generation of the sign-in.
pub(crate) const FIRST: GenerationId = Vec::new();

/// The generation of a session's cookie that counts.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CookieGeneration {
    /// Which one.
    #[prost(bytes = "vec", tag = "1")]
    pub id: GenerationId,
    /// The one it was given for.
    #[prost(bytes = "vec", tag = "2")]
    pub parent: GenerationId,
    /// When it, or one beside it, was first used.
    #[prost(uint64, tag = "3")]
    pub since_ms: u64,
    /// Whether it has taken the place of one beside it: no other one can.
    #[prost(bool, tag = "4")]
    pub settled: bool,
}

/// A generation as a cookie shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownGeneration {
    /// Which one.
    pub id: GenerationId,
    /// The one it was given for.
    pub parent: GenerationId,
}

/// What a generation that is shown is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It counts, or was sent before another one took its place.
    Good,
    /// It counts from now on.
    First(CookieGeneration),
    /// It is a copy.
    Copy,
}

impl CookieGeneration {
    /// The one that counts as long as no other one was used.
    pub fn first(created_at_ms: u64) -> Self {
        Self {
            id: FIRST,
            parent: FIRST,
            since_ms: created_at_ms,
            settled: false,
        }
    }

    /// What a generation is worth that is shown now, where one is good for `grace_ms` after another has taken its place.
    pub fn judge(&self, shown: &ShownGeneration, now_ms: u64, grace_ms: u64) -> Judged {
        if shown.id == self.id {
            return Judged::Good;
        }
        let in_grace = now_ms < self.since_ms.saturating_add(grace_ms);
        if shown.id != FIRST && shown.parent == self.id {
            // The grace of the one before is not over: requests with that one are on their way.
            if in_grace && self.id != FIRST {
                return Judged::Good;
            }
            return Judged::First(Self {
                id: shown.id.clone(),
                parent: shown.parent.clone(),
                since_ms: now_ms,
                settled: false,
            });
        }
        let is_beside = shown.id != FIRST && shown.parent == self.parent;
        if in_grace && (is_beside || shown.id == self.parent) {
            Judged::Good
        } else if is_beside && !self.settled {
            Judged::First(Self {
                id: shown.id.clone(),
                settled: true,
                ..self.clone()
            })
        } else {
            Judged::Copy
        }
    }
}

#[cfg(test)]
#[path = "cookie_generation_tests.rs"]
mod tests;
