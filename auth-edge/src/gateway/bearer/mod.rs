//! Access tokens of API clients in the place of a session: a command line, a service, an MCP client (RFC 6750, RFC 9068,
//! RFC 7662, RFC 9449, RFC 9728).
//!
//! Invariants
//! - Whoever presents a token is judged by it alone: a wrong one never falls back to a cookie.
//! - A token counts for the audience of its route, from a provider that counts there, as it was bound, or not at all.
//! - What cannot be judged (keys that were never had, an introspection endpoint that is down) lets nobody in.
//! - A wrong token costs bounded work: what is cheap is looked at first, and who sends many that are not is told to wait.
//!
//! Deliberately absent: tokens bound to a client certificate (RFC 8705), which end at a proxy as often as here; they are refused.

mod cross_origin;
mod judging;
mod presented;
mod proofs_seen;
mod refusal;
pub(crate) mod resource;
mod verified_tokens;

use std::sync::{Arc, LazyLock};

use axum::response::Response;
use oidc::{SigningAlgorithm, VerifiedAccessToken};
use prometheus::IntCounterVec;
use ring::digest;

use self::presented::PresentedToken;
use self::proofs_seen::ProofsSeen;
use self::verified_tokens::VerifiedTokens;
use crate::http::protect::rate_limit::RateLimiter;

pub(super) use self::cross_origin::{let_other_origins_read, other_origins_may_read};
pub(super) use self::judging::Presentation;
pub(super) use self::presented::{PROOF, presented};
pub(super) use self::refusal::invite;
pub(super) use self::resource::metadata_url;

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
    memory: LazyLock<TokenMemory>,
}

struct TokenMemory {
    tokens: VerifiedTokens,
    proofs: ProofsSeen,
    forged: RateLimiter,
    unknown: RateLimiter,
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

    fn count(&self, outcome: &str) {
        self.verdicts_counted.with_label_values(&[outcome]).inc();
    }
}

/// The algorithms proofs may be signed with.
fn proof_algorithms() -> Vec<&'static str> {
    let all = SigningAlgorithm::PUBLIC_KEY.iter();
    all.map(|algorithm| algorithm.name()).collect()
}

/// A hash of texts, each with its length before it, so that no two lists of texts are the same bytes.
fn digest_of(parts: &[&str]) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in parts {
        hash.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(hash.finish().as_ref());
    digest
}

/// Authorizes a request by the token it presents, or answers it.
pub(super) async fn authorize(
    presentation: &Presentation<'_>,
    presented: PresentedToken<'_>,
) -> Result<Arc<VerifiedAccessToken>, Response> {
    let (counts, route) = (&presentation.gateway.bearer, presentation.route);
    match presentation.judge(presented).await {
        Ok(token) => {
            counts.count("accepted");
            Ok(token)
        }
        Err(refusal) => {
            let (reason, _) = refusal.told();
            counts.count(reason);
            tracing::info!(
                http.route = &*route.name,
                reason,
                error = &refusal as &dyn std::error::Error,
                "an access token was refused"
            );
            Err(refusal.into_response(presentation, presented.scheme))
        }
    }
}
