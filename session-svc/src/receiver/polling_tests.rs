//! Polls of a scripted transmitter: what is told, what is asked again, and who asks.

use std::sync::{Arc, Mutex, PoisonError};

use chassis::clock::{Clock, ManualClock};
use chassis::secret::{Reloading, Secret};
use oidc::{StreamStatus, TransmitterCredentials, TransmitterSettings};
use scripted_provider::{Answer, ScriptedTransmitter, TransmitterEndpoint as Endpoint};
use serde_json::json;
use tokio::task::JoinHandle;

use super::*;
use crate::receiver::stream_record::StreamRecord;
use crate::session::Lifetime;
use crate::store::memory::MemoryStore;
use crate::vault::{KeyRing, Vault};

const NOW: u64 = 1_800_000_000;
const LIFETIME: Lifetime = Lifetime {
    rolling_ms: 1_000,
    absolute_ms: 1_000,
    roll_interval_ms: 0,
};
const TIMING: PollTiming = PollTiming {
    first_failure: Duration::from_millis(1),
    last_failure: Duration::from_millis(4),
    undecided: Duration::from_millis(2),
    idle: Duration::from_millis(2),
    look: Duration::from_millis(2),
    lease: Duration::from_millis(60),
};
/// Nothing that ends takes this long.
const DEADLINE: Duration = Duration::from_secs(20);

/// Notes what it receives, and says of it what it is told to.
#[derive(Clone, Default)]
struct ScriptedReceiver {
    /// What was received, each as often as it was.
    received: Arc<Mutex<Vec<String>>>,
    /// What is said of an event the next time it comes; taken if nothing is.
    verdicts: Arc<Mutex<Vec<(String, Received)>>>,
}

impl EventReceiver for ScriptedReceiver {
    async fn take(&self, token: &str) -> Received {
        let jti = unverified_token_id(token).unwrap_or_default();
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.push(jti.clone());
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let said = verdicts.iter().position(|(about, _)| *about == jti);
        said.map_or(Received::Taken, |at| verdicts.remove(at).1)
    }
}

struct Bench {
    scripted: ScriptedTransmitter,
    clock: Arc<ManualClock>,
    keeper: Keeper,
    receiver: ScriptedReceiver,
    shutdown: CancellationToken,
}

fn bench() -> Bench {
    let scripted = ScriptedTransmitter::start();
    scripted.script(|script| script.now = Some(NOW));
    let clock = Arc::new(ManualClock::new(NOW * 1_000));
    let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>, 100);
    let ring = KeyRing::parse(&[Secret::new("ab".repeat(32))]).unwrap();
    let vault = Arc::new(Vault::new(Reloading::new(ring)));
    Bench {
        scripted,
        clock,
        keeper: Keeper::new(Arc::new(store), vault, LIFETIME),
        receiver: ScriptedReceiver::default(),
        shutdown: CancellationToken::new(),
    }
}

impl Bench {
    fn transmitter(&self) -> Transmitter {
        let mut settings = TransmitterSettings::new(self.scripted.issuer());
        settings.http_timeout = Duration::from_millis(1_500);
        settings.credentials = TransmitterCredentials::bearer(ScriptedTransmitter::TOKEN).unwrap();
        Transmitter::new(settings).unwrap()
    }

    /// Creates a stream and records it.
    async fn stream(&self) {
        let delivery = oidc::WantedDelivery::Poll;
        let stream = oidc::NewStream {
            audience: None,
            events_requested: &[],
            delivery: &delivery,
            description: None,
        };
        let created = self.transmitter().create_stream(&stream, NOW).await.unwrap();
        let oidc::StreamDelivery::Poll { endpoint_url } = created.delivery else {
            panic!("{:?}", created.delivery);
        };
        let record = StreamRecord {
            issuer: self.scripted.issuer().to_owned(),
            stream_id: created.stream_id,
            audience: created.audience,
            poll_url: Some(endpoint_url),
            push_authorization: None,
            status: StreamStatus::Enabled,
            verifications: Vec::new(),
            verified_at_ms: None,
            last_event_at_ms: None,
        };
        let records = StreamRecords::of(&self.keeper);
        assert!(records.insert("idp", &record).await.unwrap());
    }

    fn offer(&self, jti: &str) {
        let raw = self.scripted.event(&json!({ "jti": jti }));
        self.scripted.offer(jti, raw);
    }

    fn say(&self, jti: &str, verdict: Received) {
        let verdicts = &self.receiver.verdicts;
        let mut verdicts = verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.push((jti.to_owned(), verdict));
    }

    /// Polls until it is told to stop.
    fn poll(&self, shutdown: CancellationToken) -> JoinHandle<()> {
        tokio::spawn(self.polling(TIMING).run(shutdown))
    }

    fn polling(&self, timing: PollTiming) -> Polling<ScriptedReceiver> {
        Polling {
            transmitter_id: "idp".to_owned(),
            transmitter: self.transmitter(),
            keeper: self.keeper.clone(),
            timing,
            receiver: self.receiver.clone(),
        }
    }

    fn start(&self) -> JoinHandle<()> {
        self.poll(self.shutdown.clone())
    }

    async fn stop(&self, task: JoinHandle<()>) {
        self.shutdown.cancel();
        tokio::time::timeout(DEADLINE, task).await.unwrap().unwrap();
    }

    fn times_received(&self, jti: &str) -> usize {
        let received = &self.receiver.received;
        let received = received.lock().unwrap_or_else(PoisonError::into_inner);
        received.iter().filter(|one| *one == jti).count()
    }
}

#[tokio::test]
async fn what_is_taken_is_acknowledged_and_what_comes_later_is_waited_for() {
    let bench = bench();
    bench.stream().await;
    bench.offer("a");
    bench.offer("b");
    let task = bench.start();
    bench.scripted.wait_until_fetched().await;
    bench.offer("c");
    bench.scripted.wait_until_fetched().await;
    let mut acknowledged = bench.scripted.acknowledged();
    acknowledged.sort();
    assert_eq!(acknowledged, ["a", "b", "c"]);
    let polls = bench.scripted.requests(Endpoint::Poll);
    assert_eq!(
        polls[0].json(),
        json!({ "maxEvents": 100, "returnImmediately": false })
    );
    // What is told is not told with a request that waits.
    let telling = polls
        .iter()
        .map(|poll| poll.json())
        .filter(|poll| !poll["ack"].is_null());
    assert!(telling.into_iter().all(|poll| poll["returnImmediately"] == true));
    bench.stop(task).await;
}

#[tokio::test]
async fn what_is_refused_is_told_why() {
    let bench = bench();
    bench.stream().await;
    bench.offer("bad");
    bench.say(
        "bad",
        Received::Refused {
            code: SecurityEventErrorCode::InvalidKey,
            description: "the signature does not verify".to_owned(),
        },
    );
    // A name that is another one's, none at all, and nothing that could have one.
    let other = bench.scripted.event(&json!({ "jti": "other" }));
    bench.scripted.offer("named", other);
    bench.scripted.offer("nothing", "no token");
    bench.scripted.offer("number", 7);
    let task = bench.start();
    bench.scripted.wait_until_fetched().await;
    let mut refused = bench.scripted.refused();
    refused.sort();
    let codes: Vec<(&str, &str)> = refused
        .iter()
        .map(|(jti, err, _)| (jti.as_str(), err.as_str()))
        .collect();
    let invalid = "invalid_request";
    assert_eq!(
        codes,
        [
            ("bad", "invalid_key"),
            ("named", invalid),
            ("nothing", invalid),
            ("number", invalid)
        ]
    );
    assert_eq!(refused[0].2, "the signature does not verify");
    assert_eq!(bench.times_received("other"), 0);
    assert!(bench.scripted.acknowledged().is_empty());
    bench.stop(task).await;
}

#[tokio::test]
async fn what_cannot_be_judged_comes_again_and_holds_up_nothing_else() {
    let bench = bench();
    bench.stream().await;
    for _ in 0..3 {
        bench.say("late", Received::Undecided);
    }
    bench.offer("late");
    bench.offer("sound");
    let task = bench.start();
    bench.scripted.wait_until_fetched().await;
    assert_eq!(
        (bench.times_received("late"), bench.times_received("sound")),
        (4, 1)
    );
    assert_eq!(bench.scripted.acknowledged(), ["sound", "late"]);
    assert!(bench.scripted.refused().is_empty());
    bench.stop(task).await;
}

#[tokio::test]
async fn what_was_told_and_not_answered_is_told_again() {
    let bench = bench();
    bench.stream().await;
    bench.offer("a");
    let sound = bench.scripted.event(&json!({ "jti": "a" }));
    let brings = |raw: &str| Answer::Http {
        status: 200,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: json!({ "sets": { "a": raw } }).to_string().into_bytes(),
    };
    bench.scripted.script(|script| {
        // The answer to what is told first is lost, and the transmitter has not heard of it.
        script.answer_once(Endpoint::Poll, brings(&sound));
        script.answer_once(Endpoint::Poll, Answer::status(503));
        script.answer_once(Endpoint::Poll, Answer::status(502));
    });
    let task = bench.start();
    bench.scripted.wait_until_fetched().await;
    let polls = bench.scripted.requests(Endpoint::Poll);
    let told: Vec<bool> = polls
        .iter()
        .take(4)
        .map(|poll| poll.json()["ack"] == json!(["a"]))
        .collect();
    assert_eq!(told, [false, true, true, true]);
    assert_eq!(bench.times_received("a"), 1);
    assert_eq!(bench.scripted.acknowledged(), ["a"]);
    bench.stop(task).await;
}

#[tokio::test]
async fn a_transmitter_that_does_not_listen_is_not_asked_faster() {
    let bench = bench();
    bench.stream().await;
    let sound = bench.scripted.event(&json!({ "jti": "a" }));
    bench.scripted.script(|script| {
        let sets = json!({ "a": sound });
        script.wait = Duration::ZERO;
        script.poll.insert("sets".to_owned(), sets);
    });
    let task = bench.start();
    bench.scripted.wait_for_calls(Endpoint::Poll, 7).await;
    bench.stop(task).await;
    // Each time it is told, alone, before it is asked again.
    let polls = bench.scripted.requests(Endpoint::Poll);
    let most: Vec<u64> = polls
        .iter()
        .skip(1)
        .take(6)
        .filter_map(|poll| poll.json()["maxEvents"].as_u64())
        .collect();
    assert_eq!(most, [100, 0, 100, 0, 100, 0]);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_asked_for_in_parts() {
    let bench = bench();
    bench.stream().await;
    bench.offer("a");
    bench.scripted.script(|script| {
        script.answer_once(
            Endpoint::Poll,
            Answer::Http {
                status: 200,
                headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                body: " ".repeat(9 << 20).into_bytes(),
            },
        );
    });
    let task = bench.start();
    bench.scripted.wait_until_fetched().await;
    let polls = bench.scripted.requests(Endpoint::Poll);
    let most: Vec<u64> = polls
        .iter()
        .take(3)
        .filter_map(|poll| poll.json()["maxEvents"].as_u64())
        .collect();
    assert_eq!(most, [100, 1, 100]);
    bench.stop(task).await;
}

#[tokio::test]
async fn after_whatever_failure_events_are_fetched_again() {
    let bench = bench();
    bench.stream().await;
    bench.offer("a");
    bench.scripted.script(|script| {
        for status in [401, 404, 429, 500] {
            script.answer_once(Endpoint::Poll, Answer::status(status));
        }
        script.answer_once(Endpoint::Poll, Answer::Hang);
    });
    let task = bench.start();
    bench.scripted.wait_for_calls(Endpoint::Poll, 5).await;
    bench.scripted.stop();
    bench.scripted.start_again();
    bench.scripted.wait_until_fetched().await;
    assert_eq!(bench.scripted.acknowledged(), ["a"]);
    bench.stop(task).await;
}

#[tokio::test]
async fn where_nothing_comes_in_time_it_is_seen_whether_the_transmitter_is_there() {
    let bench = bench();
    bench.stream().await;
    bench
        .scripted
        .script(|script| script.answer_once(Endpoint::Poll, Answer::Hang));
    let task = bench.start();
    bench.scripted.wait_for_calls(Endpoint::Poll, 1).await;
    // The network is only used while the clock runs.
    tokio::time::pause();
    tokio::time::advance(oidc::LONG_POLL + Duration::from_secs(1)).await;
    tokio::time::resume();
    bench.scripted.wait_for_calls(Endpoint::Poll, 3).await;
    let polls = bench.scripted.requests(Endpoint::Poll);
    let at_once: Vec<bool> = polls
        .iter()
        .map(|poll| poll.json()["returnImmediately"] == true)
        .collect();
    assert_eq!(at_once, [false, true, false]);
    bench.stop(task).await;
}

#[test]
fn each_failure_makes_the_next_pause_longer_up_to_the_longest() {
    let bench = bench();
    let polling = bench.polling(PollTiming::default());
    let mut progress = Progress::new();
    let failure = Failure::Transmitter(TransmitterError::Unauthorized);
    let pauses = (0..11).map(|_| polling.failed(&mut progress, &failure).as_secs());
    assert_eq!(
        pauses.collect::<Vec<_>>(),
        [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    );
    let mut progress = Progress::new();
    for (told, secs) in [(Some(90), 90), (Some(9_000), 300), (None, 4)] {
        let failure = Failure::Transmitter(TransmitterError::TooManyRequests {
            retry_after_secs: told,
        });
        assert_eq!(polling.failed(&mut progress, &failure).as_secs(), secs);
    }
}

#[tokio::test]
async fn a_stream_that_is_created_later_is_found_and_one_of_another_issuer_is_not_polled() {
    let bench = bench();
    let task = bench.start();
    bench.offer("a");
    bench.stream().await;
    bench.scripted.wait_until_fetched().await;
    bench.stop(task).await;
    let records = StreamRecords::of(&bench.keeper);
    let moved = records.edit("idp", |stream| stream.issuer = "https://other.example".to_owned());
    moved.await.unwrap().unwrap();
    let calls = bench.scripted.calls(Endpoint::Poll);
    let mut progress = Progress::new();
    let polling = bench.polling(TIMING);
    for _ in 0..3 {
        let looked = polling.round(&mut progress, &CancellationToken::new()).await;
        assert_eq!(looked.unwrap(), TIMING.look);
    }
    assert_eq!(bench.scripted.calls(Endpoint::Poll), calls);
}

#[tokio::test]
async fn one_replica_polls_and_another_goes_on_when_it_stops() {
    let bench = bench();
    bench.stream().await;
    let (first_stops, second_stops) = (CancellationToken::new(), CancellationToken::new());
    let first = bench.poll(first_stops.clone());
    bench.scripted.wait_for_calls(Endpoint::Poll, 1).await;
    let second = bench.poll(second_stops.clone());
    for jti in ["a", "b", "c"] {
        bench.offer(jti);
        bench.scripted.wait_until_fetched().await;
        assert_eq!(bench.times_received(jti), 1);
    }
    first_stops.cancel();
    first.await.unwrap();
    bench.offer("d");
    bench.scripted.wait_until_fetched().await;
    second_stops.cancel();
    second.await.unwrap();
    assert_eq!(bench.scripted.acknowledged(), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn who_has_lost_the_lease_polls_no_more() {
    let bench = bench();
    bench.stream().await;
    let (first_stops, second_stops) = (CancellationToken::new(), CancellationToken::new());
    let first = bench.poll(first_stops.clone());
    bench.scripted.wait_for_calls(Endpoint::Poll, 1).await;
    // As if it had stood still: by the store's clock its lease is over.
    bench.clock.advance_ms(1_000);
    let second = bench.poll(second_stops.clone());
    bench.scripted.wait_for_calls(Endpoint::Poll, 2).await;
    sleep(TIMING.lease).await;
    let calls = bench.scripted.calls(Endpoint::Poll);
    assert_eq!(calls, 2, "the first waits for the lease");
    second_stops.cancel();
    second.await.unwrap();
    bench.scripted.wait_for_calls(Endpoint::Poll, 3).await;
    first_stops.cancel();
    first.await.unwrap();
}
