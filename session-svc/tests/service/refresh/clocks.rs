//! Replicas whose own clocks are a minute apart agree, because the store's clock decides.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::{Clock as _, ManualClock, SystemClock};
use scripted_provider::{Endpoint, ScriptedProvider};
use session_proto::timestamp;
use session_proto::v1::{self, ErrorReason};

use super::support::*;
use crate::redis_server::RedisServer;

/// Clock offset of each replica, one behind and one ahead: far more than the promised five seconds.
const APART_MS: u64 = 30_000;

/// A token counts as expired this long before its end: half of its lifetime, kept in whole seconds.
const MARGIN_MS: u64 = 4_000;

/// The largest offset from the store's clock: a round trip on a busy machine.
const SLACK_MS: u64 = 200;

/// Between two checks.
const PAUSE: Duration = Duration::from_millis(50);

struct Apart {
    _redis: RedisServer,
    provider: ScriptedProvider,
    slow: Replica,
    fast: Replica,
}

/// Two replicas on one Redis; their own clocks are frozen half a minute before and after its time.
async fn apart() -> Apart {
    let redis = RedisServer::start(&[]);
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let provider = ScriptedProvider::start();
    let now_ms = SystemClock.now_ms();
    let mut replicas = Vec::new();
    for clock_ms in [now_ms - APART_MS, now_ms + APART_MS] {
        let clock = Arc::new(ManualClock::new(clock_ms));
        let store = store_at(&url, clock.clone()).await;
        store.check().await.unwrap();
        replicas.push(replica(store, clock, relying_party(provider.issuer()), limits()).await);
    }
    let (fast, slow) = (replicas.pop().unwrap(), replicas.pop().unwrap());
    Apart {
        _redis: redis,
        provider,
        slow,
        fast,
    }
}

/// The time on this machine, which is Redis' too.
fn now_ms() -> u64 {
    SystemClock.now_ms()
}

// conformance: B-111
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_with_clocks_apart_neither_expire_a_token_early_nor_serve_it_late() {
    let apart = apart().await;
    // Five seconds: the fast replica's own clock says expired before that, the slow one's says valid after it.
    let due_ms = now_ms() + 4_999;
    let signed_in = sign_in(&apart.fast.client, &apart.provider, due_ms + MARGIN_MS).await;
    let mut served = Vec::new();
    while now_ms() + SLACK_MS < due_ms {
        let token = apart.fast.token(&signed_in.id).await.unwrap().access_token;
        if now_ms() + SLACK_MS < due_ms {
            served.push(token);
        }
        tokio::time::sleep(PAUSE).await;
    }
    assert!(
        served.iter().all(|token| *token == signed_in.access_token),
        "too early"
    );
    eventually("the token to expire", || now_ms() > due_ms + SLACK_MS).await;
    let fresh = apart.slow.token(&signed_in.id).await.unwrap();
    assert_ne!(fresh.access_token, signed_in.access_token, "too late");
    let same = apart.fast.token(&signed_in.id).await.unwrap();
    assert_eq!(same.access_token, fresh.access_token);
    assert_eq!(apart.provider.calls(Endpoint::Token), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_with_clocks_apart_end_a_session_at_the_same_moment() {
    let apart = apart().await;
    let ends_ms = now_ms() + 4_000;
    let request = v1::CreateSessionRequest {
        not_after: Some(timestamp::from_ms(ends_ms)),
        ..request(&apart.provider.sign_in(SCOPE), apart.provider.issuer(), ends_ms)
    };
    let id = signed_in(&apart.fast.client, request).await.id;
    while now_ms() + SLACK_MS < ends_ms {
        let seen = apart.fast.session(&id).await;
        if now_ms() + SLACK_MS < ends_ms {
            let seen = seen.unwrap();
            assert_eq!(seen.expires_at.map(|at| timestamp::to_ms(&at)), Some(ends_ms));
        }
        tokio::time::sleep(PAUSE).await;
    }
    eventually("the session's end", || now_ms() > ends_ms + SLACK_MS).await;
    for replica in [&apart.slow, &apart.fast] {
        assert_eq!(reason(replica.session(&id).await), ErrorReason::ErrMissingSession);
    }
}
