//! A Redis that reached its `maxmemory` and evicts nothing, or that cannot save and rejects writes.

use scripted_provider::ScriptedProvider;
use session_proto::timestamp;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{self, ErrorReason};
use tonic::Streaming;

use crate::cluster::Cluster;
use crate::redis_server::{Engine, RedisServer};
use crate::refresh::support::*;
use crate::rotation::used;

/// Two replicas on one store of real servers.
struct Scene {
    provider: ScriptedProvider,
    one: Replica,
    two: Replica,
}

async fn scene(url: &str) -> Scene {
    let provider = ScriptedProvider::start();
    Scene {
        one: replica_at(url, &provider, limits()).await,
        two: replica_at(url, &provider, limits()).await,
        provider,
    }
}

/// Takes the memory away with a limit that is already exceeded, or gives it back.
fn fill(server: &RedisServer, full: bool) {
    let limit = if full { "1" } else { "0" };
    assert_eq!(server.ask(&format!("CONFIG SET maxmemory {limit}")), "+OK\r\n");
}

impl Scene {
    async fn sign_in(&self) -> SignedIn {
        sign_in(&self.one.client, &self.provider, START_MS).await
    }

    fn all_of_alice(&self) -> v1::EndSessionsRequest {
        v1::EndSessionsRequest {
            issuer: self.provider.issuer().to_owned(),
            subject: "alice".to_owned(),
            ..Default::default()
        }
    }

    /// Events at the other replica from now on.
    async fn watch(&self) -> Streaming<v1::SessionEvent> {
        let mut client = self.two.client.clone();
        let watched = client.watch_sessions(v1::WatchSessionsRequest::default());
        let mut stream = watched.await.unwrap().into_inner();
        let first = within(stream.message()).await.unwrap().unwrap();
        assert_eq!(first.kind(), Kind::Heartbeat);
        stream
    }

    async fn is_gone(&self, id: &str) {
        assert_eq!(reason(self.two.session(id).await), ErrorReason::ErrMissingSession);
    }

    /// Every way to end sessions ends them, publishes an event, and revokes.
    async fn everybody_can_be_signed_out(&self, fill: impl Fn(bool)) {
        let (one, two, three) = (self.sign_in().await, self.sign_in().await, self.sign_in().await);
        let mut reported = self.watch().await;
        fill(true);
        let refused = self.one.client.clone();
        let late = request(&self.provider.sign_in(SCOPE), self.provider.issuer(), START_MS);
        refused.clone().create_session(late.clone()).await.unwrap_err();

        let ended = within(self.one.end(&one.id)).await;
        assert_eq!(
            (ended.ended, ended.id_token_hint.as_str()),
            (true, one.id_token.as_str())
        );
        self.is_gone(&one.id).await;
        let now_ms = self.two.now_ms(&two.id).await;
        // As a logout token requests.
        let once = v1::EndSessionsRequest {
            once_id: "jti-1".to_owned(),
            once_until: Some(timestamp::from_ms(now_ms + 420_000)),
            request_id: "00000000-0000-4000-8000-000000000001".to_owned(),
            ..self.all_of_alice()
        };
        let answer = within(refused.clone().end_sessions(once.clone())).await.unwrap();
        assert_eq!(answer.into_inner().ended_count, 2);
        for gone in [&two, &three] {
            self.is_gone(&gone.id).await;
        }
        for _ in 0..3 {
            let event = within(async {
                loop {
                    let event = reported.message().await.unwrap().unwrap();
                    if event.kind() != Kind::Heartbeat {
                        return event;
                    }
                }
            });
            assert_eq!(event.await.kind(), Kind::Ended);
        }
        for revoked in [&one, &two, &three] {
            eventually("the revocation", || {
                !self.provider.knows_refresh_token(&revoked.refresh_token)
            })
            .await;
        }

        // Failed writes are retried: the mark ends an earlier sign-in, and the use is recorded.
        fill(false);
        let began = std::time::Instant::now();
        loop {
            let before = v1::CreateSessionRequest {
                tokens_received_at: Some(timestamp::from_ms(now_ms.saturating_sub(1))),
                ..late.clone()
            };
            match refused.clone().create_session(before).await {
                Err(status) => {
                    assert_eq!(reason(Err::<(), _>(status)), ErrorReason::ErrMissingSession);
                    break;
                }
                Ok(_) => assert!(began.elapsed().as_secs() < 30, "the mark is never made up for"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        loop {
            let replay = v1::EndSessionsRequest {
                request_id: "00000000-0000-4000-8000-000000000002".to_owned(),
                ..once.clone()
            };
            match refused.clone().end_sessions(replay).await {
                Err(status) => {
                    assert_eq!(reason(Err::<(), _>(status)), ErrorReason::ErrRequestIdReused);
                    break;
                }
                Ok(_) => assert!(began.elapsed().as_secs() < 30, "the use is never noted"),
            }
        }
    }
}

impl Replica {
    /// The store's approximate time: the creation time of a new session.
    async fn now_ms(&self, id: &str) -> u64 {
        let session = self.session(id).await.unwrap();
        timestamp::to_ms(&session.created_at.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_can_be_signed_out_of_a_redis_that_is_full() {
    let server = RedisServer::start(&[]);
    let scene = scene(&format!("redis://127.0.0.1:{}", server.port)).await;
    scene
        .everybody_can_be_signed_out(|full| fill(&server, full))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_full_keeps_nobody_out_whose_cookie_is_new_and_a_copy_ends_the_session() {
    let server = RedisServer::start(&[]);
    let scene = scene(&format!("redis://127.0.0.1:{}", server.port)).await;
    let id = scene.sign_in().await.id;
    let used = async |generation: u8, parent: u8| {
        let request = used(&id, generation, parent);
        let mut client = scene.one.client.clone();
        client.rotate_cookie(request).await.map(|answer| {
            let session = answer.into_inner().session.unwrap();
            session.cookie_generation.map(|counts| counts.id)
        })
    };
    fill(&server, true);
    for _ in 0..2 {
        assert_eq!(
            used(1, 0).await.unwrap(),
            None,
            "it is good, and not written down"
        );
    }
    fill(&server, false);
    assert_eq!(used(1, 0).await.unwrap(), Some(vec![1; 6]));
    fill(&server, true);
    assert_eq!(reason(used(9, 8).await), ErrorReason::ErrMissingSession);
    scene.is_gone(&id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_can_be_signed_out_of_a_cluster_that_is_full() {
    let cluster = Cluster::start(Engine::Redis);
    let scene = scene(&cluster.url()).await;
    scene
        .everybody_can_be_signed_out(|full| cluster.nodes.iter().for_each(|node| fill(node, full)))
        .await;
}

/// Nothing can be removed then, and callers receive an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_cannot_save_and_takes_no_writes_ends_nothing_and_says_so() {
    let server = RedisServer::start(&[]);
    let scene = scene(&format!("redis://127.0.0.1:{}", server.port)).await;
    let signed_in = scene.sign_in().await;
    assert_eq!(server.ask("CONFIG SET save \"3600 1\""), "+OK\r\n");
    std::fs::remove_dir_all(server.file("")).unwrap();
    server.ask("BGSAVE");
    eventually("the save to fail", || {
        server
            .ask("INFO persistence")
            .contains("rdb_last_bgsave_status:err")
    })
    .await;
    let by = Some(v1::end_session_request::By::SessionId(signed_in.id.clone()));
    let request = v1::EndSessionRequest {
        by,
        ..Default::default()
    };
    let refused = scene.one.client.clone().end_session(request).await;
    assert_eq!(reason(refused), ErrorReason::ErrStoreUnavailable);
    let refused = scene.one.client.clone().end_sessions(scene.all_of_alice()).await;
    assert_eq!(reason(refused), ErrorReason::ErrStoreUnavailable);
    scene.two.session(&signed_in.id).await.unwrap();
    assert!(scene.provider.knows_refresh_token(&signed_in.refresh_token));
    std::fs::create_dir_all(server.file("")).unwrap();
    assert_eq!(server.ask("CONFIG SET stop-writes-on-bgsave-error no"), "+OK\r\n");
    assert!(scene.one.end(&signed_in.id).await.ended);
    scene.is_gone(&signed_in.id).await;
}
