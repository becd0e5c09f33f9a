//! The outcome of an exchange is kept, even if callers stop waiting or the store fails meanwhile. The time is
//! tokio's.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::ManualClock;
use session_svc::refresh::ports::TokenRefreshError;
use session_svc::session::Session;
use session_svc::store::embedded::EmbeddedStore;
use tokio::time::{Instant, sleep};

use super::gate::{Gate, expired, refresher, settle, waiting_caller};
use super::slow_store::SlowStore;
use super::support::START_MS;
use super::turns::{Turn, TurnStore};

const WAIT_MAX: Duration = Duration::from_secs(5);

/// Long after an unrenewed lease has expired.
const HOURS: Duration = Duration::from_secs(6 * 3_600);

fn store() -> EmbeddedStore {
    EmbeddedStore::in_memory(Arc::new(ManualClock::new(START_MS)), 100).unwrap()
}

fn access_token(session: Session) -> String {
    session.values.tokens.access.unwrap().value.text().into_inner()
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_takes_eight_seconds_costs_each_caller_five_and_nobody_a_grant() {
    let (store, gate) = (store(), Gate::closed_to(WAIT_MAX));
    let (session_store, one) = refresher(Arc::new(store.clone()), &gate);
    let (_, two) = refresher(Arc::new(store), &gate);
    let session = expired();
    session_store.insert(&session, 65_536, false).await.unwrap();
    let began = Instant::now();
    let callers = [&one, &two, &one].map(|refresher| {
        let (refresher, session) = (refresher.clone(), session.clone());
        tokio::spawn(async move { refresher.refresh(session, waiting_caller()).await })
    });
    for caller in callers {
        assert_eq!(
            caller.await.unwrap().unwrap_err(),
            TokenRefreshError::ProviderUnavailable
        );
        assert_eq!(began.elapsed(), WAIT_MAX);
    }
    sleep(Duration::from_secs(3)).await;
    gate.open.send_replace(Some(true));
    settle().await;
    for refresher in [&one, &two] {
        let session = refresher
            .refresh(session.clone(), waiting_caller())
            .await
            .unwrap();
        assert_eq!(access_token(session), "fresh");
    }
    assert_eq!(
        (began.elapsed(), *gate.grants.borrow()),
        (Duration::from_secs(8), 1)
    );
}

/// The time of the call's earlier work counts as well.
#[tokio::test(start_paused = true)]
async fn a_caller_waits_from_when_its_call_began() {
    let gate = Gate::closed_to(WAIT_MAX);
    let (session_store, refresher) = refresher(Arc::new(store()), &gate);
    let session = expired();
    session_store.insert(&session, 65_536, false).await.unwrap();
    let waiting_caller = waiting_caller();
    sleep(Duration::from_secs(2)).await;
    let waited = refresher.refresh(session, waiting_caller).await;
    assert_eq!(waited.unwrap_err(), TokenRefreshError::ProviderUnavailable);
    assert_eq!(waiting_caller.since.elapsed(), WAIT_MAX);
}

#[tokio::test(start_paused = true)]
async fn who_only_waits_for_another_replica_stops_when_its_callers_are_gone() {
    for (wait_limit, hangs_up) in [(Duration::MAX, true), (WAIT_MAX, false)] {
        let (store, gate) = (store(), Gate::closed_to(wait_limit));
        let steps = Turn::free();
        let waiters = TurnStore {
            inner: Arc::new(store.clone()),
            turn: steps.clone(),
            writes_blindly: false,
        };
        let (session_store, holder) = refresher(Arc::new(store), &gate);
        let (_, waiter) = refresher(Arc::new(waiters), &gate);
        let session = expired();
        session_store.insert(&session, 65_536, false).await.unwrap();
        holder.refresh_later(session.clone(), "");
        gate.wait_until_asked().await;
        let waiting = {
            let session = session.clone();
            let waiter = waiter.clone();
            tokio::spawn(async move { waiter.refresh(session, waiting_caller()).await })
        };
        settle().await;
        if hangs_up {
            waiting.abort();
        } else {
            assert_eq!(
                waiting.await.unwrap().unwrap_err(),
                TokenRefreshError::ProviderUnavailable
            );
        }
        settle().await;
        let taken = steps.taken();
        sleep(Duration::from_secs(30)).await;
        assert_eq!(steps.taken(), taken, "hangs up: {hangs_up}");
        // A caller that asks again waits again, and receives the outcome.
        let again = tokio::spawn(async move { waiter.refresh(session, waiting_caller()).await });
        settle().await;
        gate.open.send_replace(Some(true));
        assert_eq!(access_token(again.await.unwrap().unwrap()), "fresh");
        assert_eq!(*gate.grants.borrow(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_full_store_does_not_take_is_held_until_it_has_room() {
    let (store, gate) = (store(), Gate::closed_to(WAIT_MAX));
    let full = SlowStore::over(Arc::new(store.clone()));
    let (session_store, one) = refresher(Arc::new(full.clone()), &gate);
    let (_, two) = refresher(Arc::new(store), &gate);
    let session = expired();
    session_store.insert(&session, 65_536, false).await.unwrap();
    one.refresh_later(session.clone(), "");
    gate.wait_until_asked().await;
    full.is_full(true);
    gate.open.send_replace(Some(true));
    settle().await;
    let waited = one.refresh(session.clone(), waiting_caller()).await;
    assert_eq!(
        waited.unwrap_err(),
        TokenRefreshError::StoreUnavailable,
        "nobody sees what is not saved"
    );
    sleep(HOURS).await;
    let other = two.refresh(session.clone(), waiting_caller()).await;
    assert_eq!(
        other.unwrap_err(),
        TokenRefreshError::ProviderUnavailable,
        "the lease is kept meanwhile"
    );
    full.is_full(false);
    sleep(Duration::from_secs(1)).await;
    for refresher in [one, two] {
        let session = refresher
            .refresh(session.clone(), waiting_caller())
            .await
            .unwrap();
        assert_eq!(access_token(session.clone()), "fresh");
        assert_eq!(session.values.tokens.refresh.unwrap().text().expose(), "rotated");
    }
    assert_eq!(*gate.grants.borrow(), 1);
}
