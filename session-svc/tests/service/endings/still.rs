//! A Redis that freezes for a while: a retry succeeds, and ends no later session.

use std::time::{Duration, Instant};

use scripted_provider::ScriptedProvider;
use session_proto::timestamp;
use session_proto::v1::{self, ErrorReason};

use crate::redis_server::RedisServer;
use crate::refresh::support::*;

/// How long the caller waits: longer than one command of the store may take.
const WAIT_MAX: Duration = Duration::from_millis(3_500);

/// Longer than a provider waits before it resends its token, much shorter than a lease.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_logout_token_repeated_after_redis_stalled_works_and_spares_later_sessions() {
    let server = RedisServer::start(&[]);
    let url = format!("redis://127.0.0.1:{}", server.port);
    let provider = ScriptedProvider::start();
    let replica = replica_at(&url, &provider, limits()).await;
    // The store freezes at each step in turn.
    for (number, after) in [0, 1, 2, 4, 8].into_iter().enumerate() {
        let before = sign_in(&replica.client, &provider, START_MS).await;
        let created = replica.session(&before.id).await.unwrap().created_at.unwrap();
        let call = |request: u32| v1::EndSessionsRequest {
            issuer: provider.issuer().to_owned(),
            subject: "alice".to_owned(),
            once_id: format!("jti-{number}"),
            once_until: Some(timestamp::from_ms(timestamp::to_ms(&created) + 420_000)),
            request_id: format!("00000000-0000-4000-8000-{:04}{request:08}", number),
            told_ago: Duration::ZERO.try_into().ok(),
            ..Default::default()
        };
        let mut first = tonic::Request::new(call(1));
        first.set_timeout(WAIT_MAX);
        let mut client = replica.client.clone();
        let first = tokio::spawn(async move { client.end_sessions(first).await });
        tokio::time::sleep(Duration::from_millis(after)).await;
        server.signal("STOP");
        let first = first.await.unwrap();
        server.signal("CONT");
        // The store reconnects.
        let until = Instant::now() + SOON;
        while replica
            .session(&before.id)
            .await
            .is_err_and(|status| status.code() == tonic::Code::Unavailable)
        {
            assert!(Instant::now() < until, "the store does not come back");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let later = sign_in(&replica.client, &provider, START_MS).await;
        let again = Instant::now();
        let answer = loop {
            match replica.client.clone().end_sessions(call(2)).await {
                // The store may write a note after its caller got an error; it stays until removed.
                Err(status)
                    if again.elapsed() < SOON
                        && match session_proto::error::reason_of(&status) {
                            Some(ErrorReason::ErrStoreUnavailable) => true,
                            Some(ErrorReason::ErrRequestIdReused) => first.is_err(),
                            _ => false,
                        } =>
                {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                answer => break answer,
            }
        };
        assert!(again.elapsed() < SOON, "held up for {:?}", again.elapsed());
        match first {
            Ok(_) => assert_eq!(reason(answer), ErrorReason::ErrRequestIdReused, "{after} ms"),
            Err(_) => assert!(answer.is_ok(), "{after} ms: {answer:?}"),
        }
        assert_eq!(
            reason(replica.session(&before.id).await),
            ErrorReason::ErrMissingSession,
            "{after} ms"
        );
        replica
            .session(&later.id)
            .await
            .unwrap_or_else(|status| panic!("{after} ms: a later session ended: {status:?}"));
        let replay = replica.client.clone().end_sessions(call(3)).await;
        assert_eq!(reason(replay), ErrorReason::ErrRequestIdReused, "{after} ms");
    }
}
