//! Generations of a session's cookie, for browsers without a bound key. An outdated one reveals a copy.
//!
//! The edge issues a cookie of a new generation from time to time. It counts once a browser **uses** it, so a
//! lost answer changes nothing. Each answer issues a different one, so two browsers with the same cookie
//! diverge. A browser that receives several keeps the last one; its requests may overtake each other. So all
//! siblings and their parent stay valid for a grace after the first use. If two siblings are used later, one
//! is a copy.
//!
//! Invariants
//! - A generation is valid until a child or sibling of it is used, and for a grace after that.
//! - All times are the service's. A successor counts only after the grace, so an edge with a fast clock signs
//!   no user out by issuing the next one too early.
//! - After the grace one sibling is valid: the first one used, or instead the first one used after the grace.
//!
//! Deliberately absent: the format of a cookie, and when a new one is issued.

use prost::Message;

/// Size of a generation's identifier, in bytes.
pub(crate) const ID_BYTES: usize = 6;

/// Identifies a generation; empty for the first one.
pub type GenerationId = Vec<u8>;

/// The generation of the sign-in.
pub(crate) const FIRST: GenerationId = Vec::new();

/// The current generation of a session's cookie.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CookieGeneration {
    /// Its identifier.
    #[prost(bytes = "vec", tag = "1")]
    pub id: GenerationId,
    /// The generation it replaces.
    #[prost(bytes = "vec", tag = "2")]
    pub parent: GenerationId,
    /// When it, or a sibling, was first used.
    #[prost(uint64, tag = "3")]
    pub since_ms: u64,
    /// Whether it has replaced a sibling: then no other sibling can replace it.
    #[prost(bool, tag = "4")]
    pub settled: bool,
}

/// A generation as received in a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedGeneration {
    /// Its identifier.
    pub id: GenerationId,
    /// The generation it replaces.
    pub parent: GenerationId,
}

/// The verdict on a received generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GenerationVerdict {
    /// It is current, or was sent before another one replaced it.
    Good,
    /// It is current from now on.
    First(CookieGeneration),
    /// It is a copy.
    Copy,
}

impl CookieGeneration {
    /// The generation that is current until another one is used.
    pub fn first(created_at_ms: u64) -> Self {
        Self {
            id: FIRST,
            parent: FIRST,
            since_ms: created_at_ms,
            settled: false,
        }
    }

    /// Judges a generation received now. A replaced one stays valid for `grace_ms`.
    pub fn judge(&self, shown: &ReceivedGeneration, now_ms: u64, grace_ms: u64) -> GenerationVerdict {
        if shown.id == self.id {
            return GenerationVerdict::Good;
        }
        let in_grace = now_ms < self.since_ms.saturating_add(grace_ms);
        if shown.id != FIRST && shown.parent == self.id {
            // The grace of the earlier one is not over: requests with it may still arrive.
            if in_grace && self.id != FIRST {
                return GenerationVerdict::Good;
            }
            return GenerationVerdict::First(Self {
                id: shown.id.clone(),
                parent: shown.parent.clone(),
                since_ms: now_ms,
                settled: false,
            });
        }
        let is_beside = shown.id != FIRST && shown.parent == self.parent;
        if in_grace && (is_beside || shown.id == self.parent) {
            GenerationVerdict::Good
        } else if is_beside && !self.settled {
            GenerationVerdict::First(Self {
                id: shown.id.clone(),
                settled: true,
                ..self.clone()
            })
        } else {
            GenerationVerdict::Copy
        }
    }
}

#[cfg(test)]
#[path = "cookie_generation_tests.rs"]
mod tests;
