//! The caches of tokens and proofs.

use std::sync::LazyLock;

use prometheus::IntCounterVec;

use super::proofs_seen::ProofsSeen;
use super::verified_tokens::VerifiedTokens;
use crate::http::protect::rate_limit::RateLimiter;

/// Invalid signatures allowed per address and minute: their checks take a thousandth of a core. High enough that one
/// misconfigured client does not lock out others at its address.
const FORGED_PER_MINUTE: u64 = 1_200;
/// Failed or negative introspection calls per address and minute: more than a retrying client makes.
const UNKNOWN_PER_MINUTE: u64 = 120;

/// Verifies access tokens.
pub(crate) struct BearerTokens {
    verdicts_counted: IntCounterVec,
    /// Created by the first token, so that it takes no memory without tokens.
    pub(super) memory: LazyLock<TokenMemory>,
}

pub(super) struct TokenMemory {
    pub(super) tokens: VerifiedTokens,
    pub(super) proofs: ProofsSeen,
    pub(super) forged: RateLimiter,
    pub(super) unknown: RateLimiter,
}

impl BearerTokens {
    /// Starts with empty caches.
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
