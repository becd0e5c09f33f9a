//! Access tokens whose verdict is remembered: signatures that verified, and what the provider said of a token.
//!
//! Invariants
//! - A verdict is found by all it depends on: the token, the provider, and how it was judged. What it is compared with for each
//!   request (audience, scopes, the time) is no part of it.
//! - Nothing is remembered beyond the token's own end.
//! - Memory is bounded in bytes, whatever clients send and whatever a provider says of it.
//!
//! Keys are hashes: no token is kept.

use std::sync::Arc;

use oidc::{AccessTokenError, VerifiedAccessToken};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::{Map, Value};

use super::digest_of;

/// Memory of all verdicts together, in bytes: about two thousand tokens with the usual claims.
const WEIGHT_MAX: u64 = 16 * 1024 * 1024;
/// Verdicts expected.
const EXPECTED: usize = 4_096;
/// What a verdict weighs besides its claims: its place, its key, its fields.
const ENTRY_BYTES: usize = 256;
/// Lists and trees take up to so many times what they hold: half of their places may be free.
const SPARE_FACTOR: usize = 2;
/// The heaviest verdict that is remembered, in bytes: many times the usual claims, and 256 of them fit. What is heavier is judged
/// anew each time.
const MAX_VERDICT_BYTES: u64 = 64 * 1024;
/// How long nobody asks again after a provider could not be asked: those who waited for the answer share it.
const FAILURE_PAUSE_MS: u64 = 500;
/// How long an introspection's answer counts, yes and no alike: a revocation is noticed so much later (RFC 7662, section 4, leaves the
/// time to the resource server), and a client that calls once a second costs the provider a tenth of its calls.
pub(super) const INTROSPECTION_MAX_AGE_MS: u64 = 10_000;
/// How long a verified signature counts: a key that was withdrawn is noticed so much later than with every other token.
pub(super) const SIGNATURE_MAX_AGE_MS: u64 = 60_000;

/// How a token was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JudgedBy {
    /// Its signature.
    Signature,
    /// The provider.
    Provider,
}

/// What all of a verdict depends on, hashed.
pub(super) type VerdictKey = [u8; 32];

/// The key of a token of this provider.
pub(super) fn key(by: JudgedBy, provider: &str, token: &str) -> VerdictKey {
    let label = match by {
        JudgedBy::Signature => "vestibule access token signature v1",
        JudgedBy::Provider => "vestibule access token introspection v1",
    };
    digest_of(&[label, provider, token])
}

/// What a token is, or why it is nothing.
pub(super) type Verdict = Result<Arc<VerifiedAccessToken>, Arc<AccessTokenError>>;

#[derive(Clone)]
struct Remembered {
    verdict: Verdict,
    until_ms: u64,
    bytes: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<VerdictKey, Remembered> for ByBytes {
    fn weight(&self, _: &VerdictKey, remembered: &Remembered) -> u64 {
        remembered.bytes
    }
}

/// The verdicts remembered.
pub(super) struct VerifiedTokens(Cache<VerdictKey, Remembered, ByBytes>);

impl VerifiedTokens {
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED, WEIGHT_MAX, ByBytes))
    }

    /// A verdict that still counts.
    pub(super) fn find(&self, key: &VerdictKey, now_ms: u64) -> Option<Verdict> {
        let found = self.0.get(key)?;
        (now_ms < found.until_ms).then_some(found.verdict)
    }

    /// Remembers a verdict made at `now_ms` for `max_age_ms`, or as long as the token lasts.
    pub(super) fn keep(&self, key: VerdictKey, verdict: &Verdict, now_ms: u64, max_age_ms: u64) {
        if let Some(remembered) = remembered(verdict, now_ms, max_age_ms) {
            self.0.insert(key, remembered);
        }
    }

    /// The verdict on a token, from memory, from whoever is asking already, or from `ask`; where that gives none, the next one asks
    /// anew.
    pub(super) async fn find_or_ask<E>(
        &self,
        key: &VerdictKey,
        (now_ms, max_age_ms): (u64, u64),
        ask: impl Future<Output = Result<Verdict, E>>,
    ) -> Result<Verdict, E> {
        self.0.remove_if(key, |found| found.until_ms <= now_ms);
        match self.0.get_value_or_guard_async(key).await {
            Ok(found) => Ok(found.verdict),
            Err(place) => {
                let verdict = ask.await?;
                if let Some(remembered) = remembered(&verdict, now_ms, max_age_ms) {
                    // Refused only where the place was taken meanwhile; the verdict is good all the same.
                    let _ = place.insert(remembered);
                }
                Ok(verdict)
            }
        }
    }
}

/// What is remembered of a verdict; nothing of one that weighs too much.
fn remembered(verdict: &Verdict, now_ms: u64, max_age_ms: u64) -> Option<Remembered> {
    let until_ms = match verdict {
        Err(error) if matches!(**error, AccessTokenError::Provider(_)) => {
            now_ms.saturating_add(max_age_ms.min(FAILURE_PAUSE_MS))
        }
        Err(_) => now_ms.saturating_add(max_age_ms),
        Ok(token) => {
            let ends_ms = token.exp.map_or(u64::MAX, |exp| exp.saturating_mul(1_000));
            now_ms.saturating_add(max_age_ms).min(ends_ms)
        }
    };
    let claims = verdict
        .as_ref()
        .map_or(0, |token| members(token.claims()) * SPARE_FACTOR);
    let bytes = u64::try_from(ENTRY_BYTES + claims).unwrap_or(u64::MAX);
    (bytes <= MAX_VERDICT_BYTES).then(|| Remembered {
        verdict: verdict.clone(),
        until_ms,
        bytes,
    })
}

/// The memory the members of an object take, in bytes.
fn members(object: &Map<String, Value>) -> usize {
    let member = |(name, value): (&String, &Value)| size_of::<String>() + name.len() + memory(value);
    object.iter().map(member).sum()
}

/// The memory a value takes, in bytes.
fn memory(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(all) => all.iter().map(memory).sum(),
            Value::Object(object) => members(object),
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_two_judgements_share_a_key() {
        let mut seen = std::collections::BTreeSet::new();
        for by in [JudgedBy::Signature, JudgedBy::Provider] {
            for (provider, token) in [
                ("a", "bc"),
                ("ab", "c"),
                ("", "abc"),
                ("abc", ""),
                ("a", "b"),
                ("b", "bc"),
            ] {
                assert!(seen.insert(key(by, provider, token)), "{by:?} {provider} {token}");
            }
        }
    }

    #[test]
    fn a_verdict_counts_until_its_time_and_memory_is_bounded() {
        let tokens = VerifiedTokens::new();
        let one = key(JudgedBy::Provider, "a", "one");
        let inactive = Err(Arc::new(AccessTokenError::Inactive));
        tokens.keep(one, &inactive, 1_000, 10_000);
        assert!(tokens.find(&one, 10_999).is_some());
        assert!(tokens.find(&one, 11_000).is_none());
        for number in 0..200_000 {
            let token = format!("token-{number}");
            tokens.keep(key(JudgedBy::Provider, "a", &token), &inactive, 1_000, 10_000);
        }
        let weight = tokens.0.weight();
        assert!(weight <= WEIGHT_MAX, "{weight}");
    }

    #[test]
    fn what_a_claim_weighs_is_what_it_takes() {
        let short = json!({ "list": [0, 0, 0, 0], "text": "abc" });
        let weight = memory(&short);
        assert!(weight >= 7 * size_of::<Value>() + "listtextabc".len(), "{weight}");
        let zeros = json!(vec![0; 1_000]);
        assert!(memory(&zeros) >= 1_000 * size_of::<Value>());
        let nested = json!({ "a": { "b": "x".repeat(10_000) } });
        assert!(memory(&nested) >= 10_000);
    }
}
