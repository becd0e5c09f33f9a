//! Repeatable events: the first is recorded; repetitions within a minute become one record with a `count`.
//!
//! Invariants
//! - However often a client repeats an event, it causes at most one record a minute.
//! - The table is bounded. If it is full, records that differ only in person, session or error merge.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::{AuditRecord, Event, Outcome};
use crate::clock::Clock;
use crate::findings::chain;

/// Repetitions are counted for this long, then written. It is short, so that operators see an attack while it lasts.
const INTERVAL: Duration = Duration::from_secs(60);

/// Bound on records in the table. At one record a minute each, this is less than a megabyte a minute.
const KEYS_MAX: usize = 1_024;

/// Characters of an error that distinguish records. Bounded, so that clients cannot choose the table's size.
const ERROR_CHARS_MAX: usize = 256;

/// The fields that repetitions of one record share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    event: Event,
    outcome: Outcome,
    /// Reason, caller, provider, error of the provider, step, method and status.
    shared: [Option<String>; 7],
    /// Issuer, subject, session and client address.
    own: [Option<String>; 4],
    /// The error with its causes. The request ID is not part of it.
    error: Option<String>,
}

impl Key {
    fn of(record: &AuditRecord<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (issuer, subject) = record.actor.unzip();
        let (method, status) = record.rpc.unzip();
        let (caller, provider) = (record.caller, record.provider);
        let shared = [
            record.reason,
            caller,
            provider,
            record.provider_error,
            record.step,
            method,
            status,
        ];
        Self {
            event: record.event,
            outcome: record.outcome,
            shared: shared.map(owned),
            own: [issuer, subject, record.session, record.client_address].map(owned),
            error: record.error.map(with_causes),
        }
    }

    /// The key for a full table: without user, session, client address and error.
    fn shared(self) -> Self {
        Self {
            own: Default::default(),
            error: None,
            ..self
        }
    }

    fn write(&self, count: u64) {
        let shared = self.shared.each_ref().map(Option::as_deref);
        let [reason, caller, provider, provider_error, step, method, status] = shared;
        let [issuer, subject, session, client_address] = self.own.each_ref().map(Option::as_deref);
        AuditRecord {
            reason,
            actor: issuer.zip(subject),
            session,
            caller,
            client_address,
            provider,
            provider_error,
            step,
            rpc: method.zip(status),
            count: Some(count),
            ..AuditRecord::new(self.event, self.outcome)
        }
        .write();
    }
}

/// An error with its causes, at most [`ERROR_CHARS_MAX`] of them.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    chain(error).chars().take(ERROR_CHARS_MAX).collect()
}

/// Repetitions of one record that are not written yet.
#[derive(Debug)]
struct Repetitions {
    since_ms: u64,
    count: u64,
}

/// Writes records that can be repeated.
pub struct RepeatedRecords {
    clock: Arc<dyn Clock>,
    table: Mutex<HashMap<Key, Repetitions>>,
}

impl std::fmt::Debug for RepeatedRecords {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RepeatedRecords({})", self.table().len())
    }
}

impl RepeatedRecords {
    /// Starts the task that writes repetitions once a minute, until the result is dropped. Needs a tokio runtime.
    pub fn start(clock: Arc<dyn Clock>) -> Arc<Self> {
        let records = Arc::new(Self::new(clock));
        tokio::spawn(follow(Arc::downgrade(&records)));
        records
    }

    fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            table: Mutex::default(),
        }
    }

    /// Writes a record, or counts it if an equal one was written within the last minute.
    pub fn write(&self, record: &AuditRecord<'_>) {
        let now_ms = self.clock.monotonic_ms();
        let key = Key::of(record);
        let mut table = self.table();
        if table.len() >= KEYS_MAX && !table.contains_key(&key) {
            sum_up(&mut table, now_ms);
        }
        let key = match table.len() < KEYS_MAX || table.contains_key(&key) {
            true => key,
            false => key.shared(),
        };
        let earlier = table.get_mut(&key);
        let count = match earlier {
            Some(earlier) if !is_over(earlier, now_ms) => {
                earlier.count += 1;
                return;
            }
            Some(earlier) if earlier.count > 0 => Some(earlier.count + 1),
            Some(_) | None => None,
        };
        table.insert(
            key,
            Repetitions {
                since_ms: now_ms,
                count: 0,
            },
        );
        drop(table);
        AuditRecord { count, ..*record }.write();
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Repetitions>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RepeatedRecords {
    fn drop(&mut self) {
        sum_up(&mut self.table(), u64::MAX);
    }
}

async fn follow(records: Weak<RepeatedRecords>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let Some(records) = records.upgrade() else { return };
        let now_ms = records.clock.monotonic_ms();
        sum_up(&mut records.table(), now_ms);
    }
}

fn is_over(repetitions: &Repetitions, now_ms: u64) -> bool {
    Duration::from_millis(now_ms.saturating_sub(repetitions.since_ms)) >= INTERVAL
}

/// Writes the repetitions of minutes that have passed, and removes entries without repetitions.
fn sum_up(table: &mut HashMap<Key, Repetitions>, now_ms: u64) {
    table.retain(|key, repetitions| {
        if !is_over(repetitions, now_ms) {
            return true;
        }
        let was_repeated = repetitions.count > 0;
        if was_repeated {
            key.write(std::mem::take(&mut repetitions.count));
            repetitions.since_ms = now_ms;
        }
        was_repeated
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use tracing::field::{Field, Visit};
    use tracing_subscriber::layer::{Context, SubscriberExt as _};
    use tracing_subscriber::registry::Registry;

    use super::*;
    use crate::clock::ManualClock;

    const MINUTE_MS: u64 = 60_000;

    /// Counts records, and sums up the requests they stand for.
    #[derive(Clone, Default)]
    struct WriteCounter(Arc<(AtomicUsize, AtomicU64)>);

    struct CountOf(u64);

    impl Visit for CountOf {
        fn record_u64(&mut self, field: &Field, value: u64) {
            if field.name() == "count" {
                self.0 = value;
            }
        }

        fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
    }

    impl tracing_subscriber::Layer<Registry> for WriteCounter {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, Registry>) {
            let mut count = CountOf(1);
            event.record(&mut count);
            self.0.0.fetch_add(1, Ordering::SeqCst);
            self.0.1.fetch_add(count.0, Ordering::SeqCst);
        }
    }

    impl WriteCounter {
        fn of(work: impl FnOnce(&RepeatedRecords, &ManualClock)) -> (usize, u64) {
            let written = Self::default();
            let subscriber = Registry::default().with(written.clone());
            tracing::subscriber::with_default(subscriber, || {
                let clock = ManualClock::new(1);
                work(&RepeatedRecords::new(Arc::new(clock.clone())), &clock);
            });
            (
                written.0.0.load(Ordering::SeqCst),
                written.0.1.load(Ordering::SeqCst),
            )
        }
    }

    fn refused<'a>(address: &'a str, reason: &'a str) -> AuditRecord<'a> {
        AuditRecord {
            reason: Some(reason),
            client_address: Some(address),
            ..AuditRecord::new(Event::ProviderLogout, Outcome::Failure)
        }
    }

    #[test]
    fn thousands_of_repetitions_are_one_record_and_one_sum_that_loses_none() {
        let written = WriteCounter::of(|records, _| {
            for _ in 0..3_000 {
                records.write(&refused("192.0.2.1", "body"));
            }
        });
        assert_eq!(written, (2, 3_000));
    }

    #[test]
    fn each_minute_of_repetitions_is_one_record() {
        let written = WriteCounter::of(|records, clock| {
            for _ in 0..10 {
                for _ in 0..100 {
                    records.write(&refused("192.0.2.1", "body"));
                }
                clock.advance_ms(MINUTE_MS);
            }
        });
        assert_eq!(written, (11, 1_000));
    }

    #[test]
    fn what_differs_or_comes_again_later_has_a_record_of_its_own() {
        let written = WriteCounter::of(|records, clock| {
            records.write(&refused("192.0.2.1", "body"));
            records.write(&refused("192.0.2.1", "token_malformed"));
            records.write(&refused("192.0.2.2", "body"));
            clock.advance_ms(MINUTE_MS);
            records.write(&refused("192.0.2.1", "body"));
        });
        assert_eq!(written, (4, 4));
    }

    #[test]
    fn a_hundred_thousand_addresses_write_no_more_records_than_the_table_has_places() {
        let written = WriteCounter::of(|records, _| {
            for address in 0..100_000 {
                records.write(&refused(&address.to_string(), "body"));
            }
            assert!(records.table().len() <= KEYS_MAX + 1);
        });
        assert_eq!(written, (KEYS_MAX + 2, 100_000));
    }
}
