//! What is kept of a stream, and when a verification counts.

use std::sync::Arc;

use chassis::clock::ManualClock;
use chassis::secret::Reloading;
use oidc::StreamStatus;

use super::*;
use crate::store::memory::MemoryStore;
use crate::vault::{KeyRing, Vault};

const NOW_MS: u64 = 1_800_000_000_000;
const ISSUER: &str = "https://tr.example.com";

struct Bench {
    clock: Arc<ManualClock>,
    store: MemoryStore,
    vault: Vault,
}

fn bench() -> Bench {
    let clock = Arc::new(ManualClock::new(NOW_MS));
    let key = Secret::new("ab".repeat(32));
    Bench {
        store: MemoryStore::new(Arc::clone(&clock) as Arc<dyn chassis::clock::Clock>, 10),
        vault: Vault::new(Reloading::new(KeyRing::parse(&[key]).unwrap())),
        clock,
    }
}

impl Bench {
    fn records(&self) -> StreamRecords<'_> {
        StreamRecords::new(&self.store, &self.vault)
    }

    async fn kept(&self) -> StreamRecord {
        self.records().load("idp").await.unwrap().unwrap().stream
    }

    async fn confirm(&self, state: Option<&str>) -> Confirmed {
        let confirmed = self.records().confirm("idp", ISSUER, "stream-1", state);
        confirmed.await.unwrap()
    }
}

fn stream() -> StreamRecord {
    StreamRecord {
        issuer: ISSUER.to_owned(),
        stream_id: "stream-1".to_owned(),
        audience: vec!["https://edge.example".to_owned(), "other".to_owned()],
        poll_url: None,
        push_authorization: Some(Secret::new("Bearer hunter2".to_owned())),
        status: StreamStatus::Enabled,
        verifications: Vec::new(),
        verified_at_ms: None,
        last_event_at_ms: None,
    }
}

fn given(state: &str) -> Secret<String> {
    Secret::new(state.to_owned())
}

#[tokio::test]
async fn what_is_kept_is_read_again_and_is_there_once() {
    let bench = bench();
    assert!(bench.records().load("idp").await.unwrap().is_none());
    assert!(bench.records().insert("idp", &stream()).await.unwrap());
    assert!(!bench.records().insert("idp", &stream()).await.unwrap());
    assert_eq!(bench.kept().await, stream());
    assert!(bench.records().load("other").await.unwrap().is_none());
    let polled = StreamRecord {
        poll_url: Some(Url::parse("https://tr.example.com/poll/1").unwrap()),
        push_authorization: None,
        status: StreamStatus::Disabled,
        verified_at_ms: Some(1),
        last_event_at_ms: Some(2),
        verifications: vec![RequestedVerification {
            state: given("state"),
            since_ms: 3,
            has_come: true,
        }],
        ..stream()
    };
    let edited = bench.records().edit("idp", |stream| *stream = polled.clone());
    assert_eq!(edited.await.unwrap().unwrap(), polled);
    assert_eq!(bench.kept().await, polled);
    assert!(!format!("{:?}", bench.kept().await).contains("state\""));
    assert!(bench.records().remove("idp").await.unwrap());
    assert!(!bench.records().remove("idp").await.unwrap());
    let edited = bench.records().edit("idp", |stream| stream.stream_id.clear());
    assert_eq!(edited.await.unwrap(), Err(Unedited::Missing));
}

#[tokio::test]
async fn it_is_sealed_for_its_transmitter_and_kept_for_years() {
    let bench = bench();
    bench.records().insert("idp", &stream()).await.unwrap();
    let record = bench.store.load(name("idp")).await.unwrap().unwrap();
    let shown = String::from_utf8_lossy(&record.payload).into_owned();
    assert!(!shown.contains("hunter2") && !shown.contains("stream-1"));
    bench.clock.advance_ms(9 * 365 * 86_400_000);
    bench.records().note_event("idp").await.unwrap();
    bench.clock.advance_ms(9 * 365 * 86_400_000);
    assert_eq!(bench.kept().await.stream_id, "stream-1");
    // Under another name it opens to nobody.
    let moved = Record {
        name: name("other"),
        ..bench.store.load(name("idp")).await.unwrap().unwrap()
    };
    bench.store.insert(moved, Vec::new()).await.unwrap();
    assert!(bench.records().load("other").await.is_err());
}

#[tokio::test]
async fn a_verification_counts_where_its_state_was_given() {
    let bench = bench();
    assert_eq!(bench.confirm(None).await, Confirmed::OtherStream);
    bench.records().insert("idp", &stream()).await.unwrap();
    assert_eq!(bench.confirm(Some("a")).await, Confirmed::OtherState);
    let asked = bench.records().edit("idp", |stream| {
        stream.await_verification(given("a"), NOW_MS);
        stream.await_verification(given("b"), NOW_MS);
    });
    asked.await.unwrap().unwrap();
    for (issuer, stream_id) in [("https://other.example", "stream-1"), (ISSUER, "stream-2")] {
        let confirmed = bench.records().confirm("idp", issuer, stream_id, Some("a"));
        assert_eq!(confirmed.await.unwrap(), Confirmed::OtherStream);
    }
    assert_eq!(bench.confirm(Some("c")).await, Confirmed::OtherState);
    assert_eq!(bench.kept().await.verified_at_ms, None);
    bench.clock.advance_ms(5);
    // In any order.
    assert_eq!(bench.confirm(Some("b")).await, Confirmed::Yes);
    assert_eq!(bench.kept().await.verified_at_ms, Some(NOW_MS + 5));
    assert_eq!(bench.confirm(Some("a")).await, Confirmed::Yes);
    assert_eq!(bench.kept().await.pending().count(), 0);
    assert_eq!(
        bench.confirm(Some("a")).await,
        Confirmed::Yes,
        "sent again, as it may be"
    );
    bench.clock.advance_ms(5);
    assert_eq!(
        bench.confirm(None).await,
        Confirmed::Yes,
        "of the transmitter's own accord"
    );
    assert_eq!(bench.kept().await.verified_at_ms, Some(NOW_MS + 10));
}

#[test]
fn no_more_verifications_are_remembered_than_can_be_kept() {
    let mut stream = stream();
    for number in 0..10 {
        stream.await_verification(given(&number.to_string()), number);
    }
    let since: Vec<u64> = stream.pending().map(|one| one.since_ms).collect();
    assert_eq!(since, [6, 7, 8, 9]);
}

#[tokio::test]
async fn that_events_come_is_noted_once_a_minute() {
    let bench = bench();
    bench.records().note_event("idp").await.unwrap();
    bench.records().insert("idp", &stream()).await.unwrap();
    for (after_ms, noted_ms) in [(0, 0), (59_999, 0), (1, 60_000), (59_999, 60_000), (1, 120_000)] {
        bench.clock.advance_ms(after_ms);
        bench.records().note_event("idp").await.unwrap();
        assert_eq!(bench.kept().await.last_event_at_ms, Some(NOW_MS + noted_ms));
    }
}
