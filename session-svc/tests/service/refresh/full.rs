//! A full store: requests that cannot be stored are not sent, and received tokens wait for room.

use std::sync::Arc;

use chassis::clock::{Clock as _, SystemClock};
use scripted_provider::{Endpoint, ScriptedProvider};
use tonic::Code;

use super::slow_store::SlowStore;
use super::support::*;
use crate::cluster::Cluster;
use crate::redis_server::{Engine, RedisServer, record_key};

/// Enough sessions that some have their record and their lease on different cluster nodes.
const SESSIONS: usize = 30;

fn fill(server: &RedisServer) {
    assert!(server.ask("CONFIG SET maxmemory 1").starts_with("+OK"));
}

fn empty(server: &RedisServer) {
    assert!(server.ask("CONFIG SET maxmemory 0").starts_with("+OK"));
}

async fn expired(replica: &Replica, provider: &ScriptedProvider) -> SignedIn {
    sign_in(&replica.client, provider, SystemClock.now_ms() - 1_000).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_asks_for_no_token_and_loses_none() {
    let redis = RedisServer::start(&[]);
    let provider = ScriptedProvider::start();
    let replica = replica_at(&format!("redis://127.0.0.1:{}", redis.port), &provider, limits()).await;
    let signed_in = expired(&replica, &provider).await;
    fill(&redis);
    for _ in 0..3 {
        let status = replica.token(&signed_in.id).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    }
    assert_eq!(provider.grants("refresh_token"), 0);
    empty(&redis);
    let answer = replica.token(&signed_in.id).await.unwrap();
    assert!(provider.knows_access_token(&answer.access_token));
    assert_eq!((provider.grants("refresh_token"), provider.reuses()), (1, 0));
}

/// The lease may fit where the session does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_node_of_the_session_is_full_asks_for_no_token() {
    let cluster = Cluster::start(Engine::Redis);
    let provider = ScriptedProvider::start();
    let replica = replica_at(&cluster.url(), &provider, limits()).await;
    let mut on_the_full_one = Vec::new();
    for _ in 0..SESSIONS {
        let signed_in = expired(&replica, &provider).await;
        let handle = replica.session(&signed_in.id).await.unwrap().handle;
        if cluster.owner(&record_key(&handle)) == 0 {
            on_the_full_one.push(signed_in);
        }
    }
    fill(&cluster.nodes[0]);
    let pending_call: Vec<_> = on_the_full_one
        .iter()
        .map(|one| replica.pending_call(&one.id))
        .collect();
    for pending_call in pending_call {
        let status = within(pending_call).await.unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    }
    assert_eq!(
        provider.grants("refresh_token"),
        0,
        "of {}",
        on_the_full_one.len()
    );
    empty(&cluster.nodes[0]);
    for signed_in in &on_the_full_one {
        replica.token(&signed_in.id).await.unwrap();
    }
    assert_eq!(provider.reuses(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_while_the_store_filled_up_is_kept_until_there_is_room() {
    let redis = RedisServer::start(&[]);
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let provider = ScriptedProvider::start();
    let party = impatient(&provider);
    let one = replica(
        store_at(&url, Arc::new(SystemClock)).await,
        Arc::new(SystemClock),
        party,
        limits(),
    )
    .await;
    let two = replica_at(&url, &provider, limits()).await;
    let signed_in = expired(&one, &provider).await;
    let gate = provider.hold(Endpoint::Token);
    let pending_call = one.pending_call(&signed_in.id);
    provider.wait_for_held(Endpoint::Token, 1).await;
    fill(&redis);
    gate.release();
    let status = within(pending_call).await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(provider.rotations(), 1);
    empty(&redis);
    let answer = two.token(&signed_in.id).await.unwrap();
    assert!(provider.knows_access_token(&answer.access_token));
    assert_eq!((provider.grants("refresh_token"), provider.reuses()), (1, 0));
}

/// A store that reads and grants leases but accepts no record, as on a full disk.
#[tokio::test]
async fn a_store_that_takes_no_record_asks_for_no_token() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let full = SlowStore::over(Arc::new(world.store.clone()));
    let party = relying_party(world.provider.issuer());
    let third = replica(
        Arc::new(full.clone()),
        Arc::new(world.clock.clone()),
        party,
        limits(),
    )
    .await;
    world.advance_ms(240_001);
    full.is_full(true);
    let served = third.token(&signed_in.id).await.unwrap();
    assert_eq!(served.access_token, signed_in.access_token, "it is still good");
    assert_eq!(
        third.forced(&signed_in.id).await.unwrap_err().code(),
        Code::Unavailable
    );
    assert_eq!(world.provider.grants("refresh_token"), 0);
    full.is_full(false);
    let fresh = third.token(&signed_in.id).await.unwrap();
    assert_ne!(fresh.access_token, signed_in.access_token);
    assert_eq!(
        (world.provider.grants("refresh_token"), world.provider.reuses()),
        (1, 0)
    );
}
