//! A cache of verdicts on access tokens: verified signatures, and introspection answers.
//!
//! Invariants
//! - The key of a verdict covers all it depends on: the token, the provider, and the kind of check. The
//!   checks of each request (audience, scopes, time) are not part of it.
//! - No entry outlives its token.
//! - Memory is bounded in bytes for any input of clients and providers.
//!
//! Keys are hashes: the cache stores no token.

use std::sync::Arc;

use oidc::{AccessTokenError, VerifiedAccessToken};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::{Map, Value};

/// Memory of all verdicts, in bytes: about two thousand tokens with the usual claims.
const WEIGHT_MAX: u64 = 16 * 1024 * 1024;
/// Expected number of verdicts.
const EXPECTED: usize = 4_096;
/// The weight of a verdict without its claims: its slot, its key, its fields.
const ENTRY_BYTES: usize = 256;
/// Lists and trees take up to this many times the size of their contents: half of the capacity may be free.
const SPARE_FACTOR: usize = 2;
/// The heaviest verdict that is cached, in bytes: many times the usual claims, and 256 of them fit. Heavier
/// ones are verified each time.
const MAX_VERDICT_BYTES: u64 = 64 * 1024;
/// How long a failed introspection call blocks the next one: all waiting requests share the failure.
const FAILURE_PAUSE_MS: u64 = 500;
/// Lifetime of an introspection answer, positive or negative: the longest delay of a revocation (RFC 7662,
/// section 4). A client that calls once a second costs the provider a tenth of its calls.
pub(super) const INTROSPECTION_MAX_AGE_MS: u64 = 10_000;
/// Lifetime of a verified signature: the longest extra delay until a withdrawn key is noticed.
pub(super) const SIGNATURE_MAX_AGE_MS: u64 = 60_000;

/// A hash of all a verdict depends on: the token, its provider, and the kind of check.
pub(super) type VerdictKey = [u8; 32];

/// The verified token, or why it is invalid.
pub(super) type TokenVerdict = Result<Arc<VerifiedAccessToken>, Arc<AccessTokenError>>;

#[derive(Clone)]
struct CachedVerdict {
    verdict: TokenVerdict,
    until_ms: u64,
    bytes: u64,
}

#[derive(Clone)]
struct TokenWeighter;

impl Weighter<VerdictKey, CachedVerdict> for TokenWeighter {
    fn weight(&self, _: &VerdictKey, remembered: &CachedVerdict) -> u64 {
        remembered.bytes
    }
}

/// The cached verdicts.
pub(super) struct VerifiedTokens(Cache<VerdictKey, CachedVerdict, TokenWeighter>);

impl VerifiedTokens {
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED, WEIGHT_MAX, TokenWeighter))
    }

    /// The verdict on a token: from the cache, from a call in flight, or from `ask`. If `ask` fails, the next
    /// request asks again.
    pub(super) async fn find_or_ask<E>(
        &self,
        key: &VerdictKey,
        (now_ms, max_age_ms): (u64, u64),
        ask: impl Future<Output = Result<TokenVerdict, E>>,
    ) -> Result<TokenVerdict, E> {
        if let Some(found) = self.0.get(key).filter(|found| now_ms < found.until_ms) {
            return Ok(found.verdict);
        }
        self.0.remove_if(key, |found| found.until_ms <= now_ms);
        match self.0.get_value_or_guard_async(key).await {
            Ok(found) => Ok(found.verdict),
            Err(place) => {
                let verdict = ask.await?;
                if let Some(remembered) = cache_entry(&verdict, now_ms, max_age_ms) {
                    // The insert fails only if the slot was taken meanwhile; the verdict is still valid.
                    let _ = place.insert(remembered);
                }
                Ok(verdict)
            }
        }
    }
}

/// The cache entry of a verdict; `None` if the verdict is too heavy.
fn cache_entry(verdict: &TokenVerdict, now_ms: u64, max_age_ms: u64) -> Option<CachedVerdict> {
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
    (bytes <= MAX_VERDICT_BYTES).then(|| CachedVerdict {
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
    use crate::gateway::bearer::refusal::TokenRefusal;

    #[tokio::test]
    async fn a_verdict_counts_until_its_time_and_memory_is_bounded() {
        let tokens = VerifiedTokens::new();
        let inactive = || Err(Arc::new(AccessTokenError::Inactive));
        let judge = async |number: u32, now_ms| {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_be_bytes());
            let mut asked = false;
            let ask = async {
                asked = true;
                Ok::<_, TokenRefusal>(inactive())
            };
            let verdict = tokens.find_or_ask(&key, (now_ms, 10_000), ask).await;
            assert!(verdict.unwrap().is_err());
            asked
        };
        assert!(judge(0, 1_000).await);
        assert!(!judge(0, 10_999).await);
        assert!(judge(0, 11_000).await);
        for number in 0..200_000 {
            judge(number, 11_000).await;
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
