//! A Redis that freezes during a refresh and runs the pending commands later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis::clock::{Clock as _, SystemClock};
use scripted_provider::ScriptedProvider;

use super::slow_store::SlowStore;
use super::support::*;
use crate::redis_server::RedisServer;

/// Longer than the service waits for an answer.
const STANDS: Duration = Duration::from_millis(3_200);

/// Much shorter than a lease.
const SOON: Duration = Duration::from_secs(4);

/// A lease that is granted after its request timed out belongs to the requester.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_granted_after_it_was_given_up_keeps_nobody_waiting() {
    let redis = RedisServer::start(&[]);
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let provider = ScriptedProvider::start();
    let slow = SlowStore::over(store_at(&url, Arc::new(SystemClock)).await);
    let party = relying_party(provider.issuer());
    let one = replica(Arc::new(slow.clone()), Arc::new(SystemClock), party, limits()).await;
    let two = replica_at(&url, &provider, limits()).await;
    let id = sign_in(&one.client, &provider, SystemClock.now_ms() - 1_000)
        .await
        .id;
    // The server knows the scripts: a sent command runs, even late.
    one.forced(&id).await.unwrap();
    two.forced(&id).await.unwrap();

    slow.stand_still_before_a_lease();
    let pending_call = one.forcing(&id);
    slow.wait_until_it_stands().await;
    redis.signal("STOP");
    let stopped = Instant::now();
    slow.go_on();
    eventually("the request to be given up", || stopped.elapsed() > STANDS).await;
    redis.signal("CONT");
    let went_on = Instant::now();
    let answer = within(pending_call).await.unwrap().unwrap();
    let took = went_on.elapsed();
    assert!(provider.knows_access_token(&answer.access_token));
    assert!(took < SOON, "{took:?}");
    let other = two.token(&id).await.unwrap();
    assert_eq!(other.access_token, answer.access_token);
    assert_eq!((provider.grants("refresh_token"), provider.reuses()), (3, 0));
}
