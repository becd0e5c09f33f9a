//! Waiting for another replica. Time is tokio's: it advances only when no task can run.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::ManualClock;
use session_svc::refresh::Refresher;
use session_svc::refresh::ports::TokenRefreshError;
use session_svc::session::{Handle, Session};
use session_svc::store::embedded::EmbeddedStore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::gate::{Gate, expired, refresher, settle, waiting_caller};
use super::support::START_MS;
use super::turns::{Turn, TurnStore};

/// One replica that refreshes, and one that waits for it.
struct Scene {
    gate: Gate,
    handle: Handle,
    winner: JoinHandle<Result<Session, TokenRefreshError>>,
    waiter: JoinHandle<Result<Session, TokenRefreshError>>,
    /// The waiter's steps at the store.
    steps: Turn,
}

async fn scene() -> Scene {
    let store = EmbeddedStore::in_memory(Arc::new(ManualClock::new(START_MS)), 100).unwrap();
    let gate = Gate::closed();
    let replica = |turn: Turn| {
        let store = TurnStore {
            inner: Arc::new(store.clone()),
            turn,
            writes_blindly: false,
        };
        refresher(Arc::new(store), &gate)
    };
    let steps = Turn::free();
    let ((session_store, first), (_, second)) = (replica(Turn::free()), replica(steps.clone()));
    let session = expired();
    session_store.insert(&session, 65_536, false).await.unwrap();
    let refreshing = |refresher: Refresher| {
        let session = session.clone();
        tokio::spawn(async move { refresher.refresh(session, waiting_caller()).await })
    };
    let winner = refreshing(first);
    gate.wait_until_asked().await;
    let waiter = refreshing(second);
    settle().await;
    Scene {
        handle: session.handle,
        gate,
        winner,
        waiter,
        steps,
    }
}

impl Scene {
    /// Both replicas return the fresh token. Returns how long the waiter took from now.
    async fn both_get_it(self) -> Duration {
        let began = Instant::now();
        let waited = self.waiter.await.unwrap().unwrap();
        let took = began.elapsed();
        let won = self.winner.await.unwrap().unwrap();
        assert_eq!((waited.handle, &waited.tokens), (self.handle, &won.tokens));
        assert_eq!(
            waited.values.tokens.access.unwrap().value.text().expose(),
            "fresh"
        );
        assert_eq!(*self.gate.grants.borrow(), 1, "one grant");
        took
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_has_the_winners_token_within_a_few_hundredths_of_a_second() {
    let scene = scene().await;
    scene.gate.open.send_replace(Some(true));
    let took = scene.both_get_it().await;
    assert!(took <= Duration::from_millis(25), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_looks_twice_a_second_at_a_slow_provider() {
    const SECONDS: usize = 38;
    let scene = scene().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = scene.steps.taken();
    // Virtual time, so the test does not wait.
    tokio::time::sleep(Duration::from_secs(SECONDS as u64)).await;
    // The waiter reads the session and asks for the lease.
    let looks = (scene.steps.taken() - before) / 2;
    assert!((SECONDS..=2 * SECONDS + 4).contains(&looks), "{looks} looks");
    scene.gate.open.send_replace(Some(true));
    assert!(scene.both_get_it().await <= Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_asks_itself_when_the_other_met_an_outage() {
    let scene = scene().await;
    scene.gate.open.send_replace(Some(false));
    let failed = scene.winner.await.unwrap();
    assert_eq!(failed.unwrap_err(), TokenRefreshError::ProviderUnavailable);
    scene.gate.open.send_replace(Some(true));
    let session = scene.waiter.await.unwrap().unwrap();
    assert_eq!(
        session.values.tokens.access.unwrap().value.text().expose(),
        "fresh"
    );
    assert_eq!(*scene.gate.grants.borrow(), 2);
}
