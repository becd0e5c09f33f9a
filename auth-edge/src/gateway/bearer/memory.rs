//! What is remembered of tokens and proofs.

use std::sync::LazyLock;

use prometheus::IntCounterVec;

use super::proofs_seen::ProofsSeen;
use super::verified_tokens::VerifiedTokens;
use crate::http::protect::rate_limit::RateLimiter;

/// Signatures of one address in a minute that did not verify: a thousandth of a core, and enough that one mistaken client keeps
/// nobody out who shares its address.
const FORGED_PER_MINUTE: u64 = 1_200;
/// Questions about tokens of one address in a minute that the provider answered with no, or not at all: more than a client that
/// retries.
const UNKNOWN_PER_MINUTE: u64 = 120;

/// What judges access tokens.
pub(crate) struct BearerTokens {
    verdicts_counted: IntCounterVec,
    /// Made by the first token: where none come, it takes no memory.
    pub(super) memory: LazyLock<TokenMemory>,
}

pub(super) struct TokenMemory {
    pub(super) tokens: VerifiedTokens,
    pub(super) proofs: ProofsSeen,
    pub(super) forged: RateLimiter,
    pub(super) unknown: RateLimiter,
}

impl BearerTokens {
    /// Has seen no token yet.
    #[must_use]
    pub(crate) fn new(verdicts_counted: IntCounterVec) -> Self {
        Self {
            verdicts_counted,
            memory: LazyLock::new(|| TokenMemory {
                tokens: VerifiedTokens::new(),
                proofs: ProofsSeen::new(),
                forged: RateLimiter::new(FORGED_PER_MINUTE),
                unknown: RateLimiter::new(UNKNOWN_PER_MINUTE),
            }),
        }
    }

    pub(super) fn count(&self, outcome: &str) {
        self.verdicts_counted.with_label_values(&[outcome]).inc();
    }
}
