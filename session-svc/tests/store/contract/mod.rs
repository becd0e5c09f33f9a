//! What every session store has to do, on any engine.
//!
//! Each case is a function over a `Bench`: a store, and how its time passes. `suite!` makes one test of each
//! case for an adapter. Cases use their own names, so that they may share an engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use session_svc::session::index;
use session_svc::store::{KeyValueStore, Name, Record, StoreError, StoreUpdate};

pub(crate) mod events;
pub(crate) mod indexes;
pub(crate) mod leases;
pub(crate) mod records;

/// Longest any awaited change may take before a case fails.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(15);

/// How long expiring test values live, in milliseconds: short if time is real.
pub(crate) const SHORT_MS: u64 = 300;

/// Lets at least the given number of milliseconds pass by the store's clock.
pub(crate) type Pass = Box<dyn Fn(u64) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A store under test.
pub(crate) struct Bench {
    /// The store.
    pub(crate) store: Arc<dyn KeyValueStore>,
    /// A second replica on the same engine.
    pub(crate) other: Arc<dyn KeyValueStore>,
    /// How time passes.
    pub(crate) pass: Pass,
    /// Values that must live as long as the store: its engine, its directory.
    pub(crate) _keeps: Box<dyn std::any::Any + Send>,
}

/// An unused name.
pub(crate) fn fresh_name() -> Name {
    static NAMES: AtomicU64 = AtomicU64::new(1);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    let number = u64::from(std::process::id()) << 32 | number;
    Name::from_bytes((u128::from(number) << 64 | u128::from(started())).to_be_bytes())
}

/// The name of a number.
pub(crate) fn numbered(number: u64) -> Name {
    Name::from_bytes(u128::from(number).to_be_bytes())
}

/// The name of a text.
pub(crate) fn named(text: &str) -> Name {
    index::by_subject("a test", text)
}

fn started() -> u64 {
    static STARTED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *STARTED.get_or_init(|| {
        use chassis::clock::Clock as _;
        chassis::clock::SystemClock.now_ms()
    })
}

/// A record that lives for `ttl_ms` from now by the store's clock, found by `indexes`.
pub(crate) fn record(store: &dyn KeyValueStore, ttl_ms: u64, indexes: &[Name]) -> Record {
    let now = store.now_ms();
    Record {
        name: fresh_name(),
        version: 1,
        expires_at_ms: now + ttl_ms,
        created_at_ms: now,
        indexes: indexes.to_vec(),
        payload: vec![0, 159, 146, 150, b'\r', b'\n', b'{', 255],
    }
}

/// `record` with the next version and another payload.
pub(crate) fn next(record: &Record, payload: &[u8]) -> Record {
    Record {
        version: record.version + 1,
        payload: payload.to_vec(),
        ..record.clone()
    }
}

/// Waits until `done` returns true, and fails if that takes too long.
pub(crate) async fn eventually<F, Fut>(what: &str, mut done: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let started = Instant::now();
    while !done().await {
        assert!(started.elapsed() < WAIT_MAX, "still waiting for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The next item of an event stream.
pub(crate) async fn said(stream: &mut BoxStream<'static, Result<StoreUpdate, StoreError>>) -> StoreUpdate {
    let next = tokio::time::timeout(WAIT_MAX, stream.next())
        .await
        .expect("an event in time");
    next.expect("the stream goes on").expect("the store can be heard")
}

/// The next event's payload and position.
pub(crate) async fn received(
    stream: &mut BoxStream<'static, Result<StoreUpdate, StoreError>>,
) -> (Vec<u8>, String) {
    match said(stream).await {
        StoreUpdate::Event { position, payload } => (payload, position),
        StoreUpdate::Missed => panic!("events were missed"),
    }
}

/// Passes the list of all cases to the macro `$then`, after its own arguments.
#[macro_export]
macro_rules! cases {
    ($then:ident, $($arguments:tt)*) => {
        $crate::$then! { $($arguments)*
            records: a_new_record_is_kept_and_its_name_is_taken,
            records: an_unknown_record_is_not_there,
            records: a_record_is_kept_out_while_its_barrier_is_there,
            records: a_record_comes_back_byte_for_byte,
            records: a_replacement_needs_the_expected_version,
            records: a_removed_record_is_gone_and_cannot_be_written_again,
            records: a_record_is_gone_when_the_stores_clock_reaches_its_expiry,
            records: a_replacement_can_prolong_a_record,
            records: a_replacement_can_shorten_a_record,
            records: an_expired_record_cannot_be_replaced_or_removed_and_its_name_is_free,
            indexes: an_index_lists_the_newest_first_in_pages,
            indexes: equal_creation_times_page_without_loss_or_repetition,
            indexes: removal_leaves_the_index,
            indexes: expiry_leaves_the_index,
            indexes: a_replacement_moves_a_record_to_the_lists_it_names,
            indexes: a_list_goes_on_behind_each_of_its_entries,
            indexes: a_list_that_shrinks_while_it_is_read_loses_nothing_that_stays,
            indexes: several_records_are_read_in_the_order_of_their_names,
            indexes: an_index_outlives_its_first_member_when_another_is_prolonged,
            records: concurrent_writers_lose_no_increment,
            records: of_concurrent_inserts_of_a_name_one_wins,
            records: of_a_removal_and_writers_the_removal_stays,
            records: a_value_is_remembered_until_its_time,
            records: of_concurrent_rememberers_one_is_first,
            records: it_says_that_it_works,
            leases: a_lease_is_held_by_one,
            leases: a_lease_is_taken_again_by_its_holder_alone,
            leases: a_lease_given_back_is_free_at_once,
            leases: a_renewed_lease_is_held_longer,
            leases: a_lease_that_ran_out_is_taken_over_and_the_old_holder_is_refused,
            leases: a_lease_and_a_value_may_last_no_time_or_for_ever,
            leases: serials_grow_with_every_lease,
            leases: of_concurrent_takers_one_gets_the_lease,
            events: writes_are_published_in_order_to_every_replica,
            events: refused_writes_publish_nothing,
            events: a_stream_resumes_after_a_position_without_loss,
            events: of_many_records_every_event_is_heard_from_a_position_on,
            events: a_foreign_position_is_told_as_missed,
            events: a_position_that_was_dropped_is_told_as_missed,
            events: a_stream_tells_only_what_comes_after_it_began,
            events: the_newest_position_is_one_to_go_on_from,
        }
    };
}

/// One test of each case for the adapter, on a bench from `$open`.
#[macro_export]
macro_rules! suite {
    ($open:expr) => {
        mod contract {
            use super::*;
            $crate::cases!(each_alone, $open,);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! each_alone {
    ($open:expr, $($group:ident: $case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let bench = $open.await;
                $crate::contract::$group::$case(&bench).await;
            }
        )*
    };
}

/// Runs all cases in turn on one bench, for engines that start slowly.
#[macro_export]
macro_rules! run_all {
    ($bench:expr, $($group:ident: $case:ident,)*) => {
        $(
            eprintln!("case: {}", stringify!($case));
            $crate::contract::$group::$case($bench).await;
        )*
    };
}
