//! A thousand callers at two replicas on one Redis when the token expires: one grant, one token for all. This
//! repeats with a slow provider and a Redis failover.

use std::time::Duration;

use chassis::clock::{Clock as _, SystemClock};
use scripted_provider::{Endpoint, ScriptedProvider};
use serde_json::json;
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::v1;
use session_svc::sessions::SessionLimits;
use tokio::task::JoinHandle;

use super::support::*;
use crate::redis_server::{Engine, RedisServer};
use crate::sentinels::Sentinels;

const CALLERS: usize = 1_000;

/// The longest a caller waits; the server allows a minute per call.
const DEADLINE: Duration = Duration::from_secs(45);

struct Bench {
    provider: ScriptedProvider,
    replicas: [Replica; 2],
    clients: [SessionClient; 2],
    id: String,
}

impl Bench {
    /// A session with an expired token. Refreshed tokens arrive expired: a late caller costs a grant.
    async fn start(url: &str, limits: SessionLimits) -> Self {
        let provider = ScriptedProvider::start();
        provider.script(|script| _ = script.refresh.insert("expires_in".into(), json!(0)));
        let replicas = [
            replica_at(url, &provider, limits).await,
            replica_at(url, &provider, limits).await,
        ];
        let client = |replica: &Replica| {
            let mut settings = ClientSettings::new([replica.url.clone()]);
            settings.deadline = DEADLINE;
            SessionClient::new(settings).unwrap()
        };
        let expired_ms = SystemClock.now_ms() - 1_000;
        Self {
            id: sign_in(&replicas[0].client, &provider, expired_ms).await.id,
            clients: replicas.each_ref().map(client),
            provider,
            replicas,
        }
    }

    /// Starts all callers, half of them at each replica; each retries as the status allows. A balancing
    /// client does not work for this: it sends all calls to its first connection until the second is open.
    fn ask(&self) -> Vec<JoinHandle<String>> {
        let caller = |nth: usize| {
            let (client, session_id) = (self.clients[nth % 2].clone(), self.id.clone());
            tokio::spawn(async move {
                loop {
                    let request = v1::GetAccessTokenRequest {
                        session_id: session_id.clone(),
                        ..Default::default()
                    };
                    match client.get_access_token(request).await {
                        Ok(answer) => return answer.access_token,
                        Err(error) => assert!(error.is_unavailable(), "{error:?}"),
                    }
                }
            })
        };
        (0..CALLERS).map(caller).collect()
    }

    /// Until all callers wait for one grant, half of them at each replica.
    async fn wait_for_all(&self) {
        let half = u64::try_from(CALLERS / 2).unwrap();
        eventually("all callers to wait", || {
            self.replicas.iter().all(|replica| replica.waiting() == half)
        })
        .await;
    }

    /// All callers get one token from the one grant, and the token works.
    async fn all_got_one_token(&self, callers: Vec<JoinHandle<String>>, grants: usize) -> String {
        let mut tokens = Vec::new();
        for caller in callers {
            tokens.push(within(caller).await.unwrap());
        }
        tokens.dedup();
        assert_eq!(tokens.len(), 1, "all get the winner's token");
        assert!(self.provider.knows_access_token(&tokens[0]));
        assert_eq!(self.provider.grants("refresh_token"), grants);
        assert_eq!((self.provider.rotations(), self.provider.reuses()), (grants, 0));
        tokens.remove(0)
    }

    async fn expire_once(&self, grants: usize) -> String {
        let gate = self.provider.hold(Endpoint::Token);
        let callers = self.ask();
        self.wait_for_all().await;
        gate.release();
        self.all_got_one_token(callers, grants).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_callers_at_two_replicas_cost_one_grant_at_each_expiry() {
    let redis = RedisServer::start(&[]);
    let bench = Bench::start(&format!("redis://127.0.0.1:{}", redis.port), limits()).await;
    let first = bench.expire_once(1).await;
    let second = bench.expire_once(2).await;
    assert_ne!(first, second);
    let outcomes = |outcome| {
        bench
            .replicas
            .iter()
            .map(|one| one.refreshes(outcome))
            .sum::<u64>()
    };
    assert_eq!((outcomes("refreshed"), outcomes("joined")), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_slower_than_the_lease_gets_one_request() {
    let redis = RedisServer::start(&[]);
    let limits = SessionLimits {
        refresh_lease: Duration::from_secs(3),
        ..limits()
    };
    let bench = Bench::start(&format!("redis://127.0.0.1:{}", redis.port), limits).await;
    let late = Duration::from_secs(8);
    bench
        .provider
        .script(|script| _ = script.delays.insert(Endpoint::Token, late));
    bench.expire_once(1).await;
    bench.provider.script(|script| script.delays.clear());
    bench.expire_once(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_failover_during_a_refresh_costs_no_second_grant_and_no_token() {
    let mut servers = Sentinels::start(Engine::Redis);
    let limits = SessionLimits {
        // Longer than any failover: without the lease, two replicas may ask. Another test covers that.
        refresh_lease: Duration::from_secs(60),
        ..limits()
    };
    let bench = Bench::start(&servers.url(), limits).await;
    let gate = bench.provider.hold(Endpoint::Token);
    let callers = bench.ask();
    bench.wait_for_all().await;
    // The session and the lease.
    servers.servers[0].wait_until_copied();
    servers.servers[0].kill();
    servers.wait_for_second();
    gate.release();
    bench.all_got_one_token(callers, 1).await;
    bench.expire_once(2).await;
}
