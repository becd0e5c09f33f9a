//! Reports records that need a key this replica does not have: a counter, and a log record per key and
//! minute.
//!
//! Invariant: a damaged record may name any key, so the report has a few keys and one counter for others.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use prometheus::{IntCounterVec, Registry, register_int_counter_vec_with_registry};

use super::KeyId;

/// Most keys reported by their fingerprint: more than an operator ever changes at a time.
const KEYS_MAX: usize = 8;

/// The label of all other keys.
const OTHER: &str = "other";

/// Pause between log records for one key: without it, every read of the key's records would log.
const LOG_INTERVAL_MS: u64 = 60_000;

/// Counts and logs missing keys.
pub(crate) struct UnknownKeys {
    records: IntCounterVec,
    /// Each key with the time of its next log record.
    known: Mutex<BTreeMap<KeyId, u64>>,
}

impl UnknownKeys {
    /// Creates and registers the metric.
    ///
    /// # Errors
    /// The metric is registered already.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            records: register_int_counter_vec_with_registry!(
                "sealed_records_unknown_key_total",
                "Reads of records that are sealed with a key this replica does not have, by the key's fingerprint.",
                &["key"],
                registry
            )?,
            known: Mutex::default(),
        })
    }

    /// Counts a record that needs this key, and logs the key if it was not logged within the last minute.
    pub(super) fn report(&self, key: KeyId, now_ms: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEYS_MAX && !known.contains_key(&key) {
            self.records.with_label_values(&[OTHER]).inc();
            return;
        }
        let due_ms = known.entry(key).or_default();
        let is_due = *due_ms <= now_ms;
        if is_due {
            *due_ms = now_ms.saturating_add(LOG_INTERVAL_MS);
        }
        drop(known);
        self.records.with_label_values(&[&key.to_string()]).inc();
        if is_due {
            tracing::error!(
                %key,
                "a record is sealed with a key that is not in SESSION_ENCRYPTION_KEY: callers ask another replica. Give this replica all keys"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_counted_by_its_fingerprint_and_a_flood_of_keys_together() {
        let registry = Registry::new();
        let report = UnknownKeys::new(&registry).unwrap();
        for number in 0..100_u32 {
            report.report(KeyId(number.to_be_bytes()), 0);
        }
        report.report(KeyId([0, 0, 0, 7]), 1);
        let count = |key: &str| report.records.with_label_values(&[key]).get();
        assert_eq!((count("00000007"), count("00000001"), count(OTHER)), (2, 1, 92));
        assert_eq!(report.known.lock().unwrap().len(), KEYS_MAX);
    }
}
