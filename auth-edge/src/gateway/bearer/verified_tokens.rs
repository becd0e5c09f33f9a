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

/// What all of a verdict depends on, hashed: the token, its provider, and how it was judged.
pub(super) type VerdictKey = [u8; 32];

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

    /// The verdict on a token, from memory, from whoever is asking already, or from `ask`; where that gives none, the next one asks
    /// anew.
    pub(super) async fn find_or_ask<E>(
        &self,
        key: &VerdictKey,
        (now_ms, max_age_ms): (u64, u64),
        ask: impl Future<Output = Result<Verdict, E>>,
    ) -> Result<Verdict, E> {
        if let Some(found) = self.0.get(key).filter(|found| now_ms < found.until_ms) {
            return Ok(found.verdict);
        }
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
