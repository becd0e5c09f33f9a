//! A process that is killed while it refreshes: another one takes over after its lease expires.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chassis::clock::{Clock as _, SystemClock};
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Endpoint, ScriptedProvider};
use session_proto::v1::session::State;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason, GetAccessTokenRequest};
use session_svc::sessions::SessionLimits;

use super::support::*;
use crate::redis_server::{RedisServer, free_port};

/// The lease of debug builds.
const LEASE: Duration = Duration::from_secs(3);

/// Killed by its id, also when the test fails.
struct Process(Child);

impl Process {
    /// SIGKILL: nothing is cleaned up.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn start(store: &str, issuer: &str) -> (Process, Client) {
    let port = free_port();
    let child = Command::new(env!("CARGO_BIN_EXE_session-svc"))
        .env_clear()
        .env("SESSION_LISTEN", format!("127.0.0.1:{port}"))
        .env("SESSION_ADMIN_LISTEN", format!("127.0.0.1:{}", free_port()))
        .env("SESSION_STORE", store)
        .env("SESSION_ENCRYPTION_KEY", KEY)
        .env("OIDC_ISSUER_URL", issuer)
        .env("OIDC_CLIENT_ID", CLIENT_ID)
        .env("OIDC_CLIENT_SECRET", CLIENT_SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Process(child);
    let connected = async {
        loop {
            if let Ok(client) = SessionServiceClient::connect(format!("http://127.0.0.1:{port}")).await {
                return client;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    (process, within(connected).await)
}

struct Scene {
    _redis: RedisServer,
    provider: ScriptedProvider,
    victim: Process,
    victims_client: Client,
    survivor: Replica,
    id: String,
}

async fn scene() -> Scene {
    let redis = RedisServer::start(&[]);
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let provider = ScriptedProvider::start();
    let limits = SessionLimits {
        refresh_lease: LEASE,
        ..limits()
    };
    let survivor = replica_at(&url, &provider, limits).await;
    let (victim, victims_client) = start(&url, provider.issuer()).await;
    let expired_ms = SystemClock.now_ms() - 1_000;
    let id = sign_in(&survivor.client, &provider, expired_ms).await.id;
    Scene {
        _redis: redis,
        provider,
        victim,
        victims_client,
        survivor,
        id,
    }
}

impl Scene {
    /// Makes the victim ask the provider; the test does not wait for the answer.
    fn victim_asks(&self) {
        let mut client = self.victims_client.clone();
        let request = GetAccessTokenRequest {
            session_id: self.id.clone(),
            ..Default::default()
        };
        tokio::spawn(async move { client.get_access_token(request).await });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_caller_takes_over_when_the_lease_of_a_killed_process_has_run_out() {
    let mut scene = scene().await;
    let gate = scene.provider.hold(Endpoint::Token);
    scene.victim_asks();
    scene.provider.wait_for_held(Endpoint::Token, 1).await;
    scene.victim.kill();
    // The request ended with the process, before the provider acted.
    scene.provider.wait_for_held(Endpoint::Token, 0).await;
    gate.release();

    let answer = scene.survivor.token(&scene.id).await.unwrap();
    assert!(scene.provider.knows_access_token(&answer.access_token));
    assert_eq!((scene.provider.rotations(), scene.provider.reuses()), (1, 0));
    let again = scene.survivor.forced(&scene.id).await.unwrap();
    assert_ne!(again.access_token, answer.access_token);
    assert_eq!((scene.provider.rotations(), scene.provider.reuses()), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_after_the_rotation_leaves_a_session_that_needs_a_sign_in() {
    let mut scene = scene().await;
    let gate = scene.provider.hold_answers(Endpoint::Token);
    scene.victim_asks();
    scene.provider.wait_for_held(Endpoint::Token, 1).await;
    assert_eq!(scene.provider.rotations(), 1);
    scene.victim.kill();
    scene.provider.wait_for_held(Endpoint::Token, 0).await;
    gate.release();

    let refused = scene.survivor.token(&scene.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    assert_eq!(scene.provider.reuses(), 1);
    let session = scene.survivor.session(&scene.id).await.unwrap();
    assert_eq!(
        (session.state(), session.has_refresh_token),
        (State::NeedsSignIn, false)
    );

    let calls = scene.provider.calls(Endpoint::Token);
    let refused = scene.survivor.forced(&scene.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    assert_eq!(scene.provider.calls(Endpoint::Token), calls, "not tried again");
}

/// A pending answer is in the store, not in the process that asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_while_its_answer_waits_for_a_key_loses_nothing() {
    let mut scene = scene().await;
    scene.provider.rotate_keys_unpublished();
    let before = scene.survivor.session(&scene.id).await.unwrap().version;
    scene.victim_asks();
    let kept = async {
        while scene.survivor.session(&scene.id).await.unwrap().version == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(kept).await;
    scene.victim.kill();
    scene.provider.script(|script| script.jwks = None);

    let answer = scene.survivor.token(&scene.id).await.unwrap();
    assert!(scene.provider.knows_access_token(&answer.access_token));
    assert_eq!((scene.provider.rotations(), scene.provider.reuses()), (1, 0));
    scene.survivor.forced(&scene.id).await.unwrap();
    assert_eq!((scene.provider.rotations(), scene.provider.reuses()), (2, 0));
}

/// An exchange rotates nothing: a token that no caller received expires unused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_during_an_exchange_costs_the_next_caller_another() {
    let mut scene = scene().await;
    scene.survivor.token(&scene.id).await.unwrap();
    let request = GetAccessTokenRequest {
        session_id: scene.id.clone(),
        audience: "orders".to_owned(),
        ..Default::default()
    };
    let gate = scene.provider.hold_answers(Endpoint::Token);
    let (mut victim, asked) = (scene.victims_client.clone(), request.clone());
    tokio::spawn(async move { victim.get_access_token(asked).await });
    scene.provider.wait_for_held(Endpoint::Token, 1).await;
    scene.victim.kill();
    gate.release();
    let answer = within(scene.survivor.client.clone().get_access_token(request)).await;
    assert!(
        scene
            .provider
            .knows_access_token(&answer.unwrap().into_inner().access_token)
    );
    assert_eq!((scene.provider.rotations(), scene.provider.reuses()), (1, 0));
}

/// Pending revocations are noted before the session is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_had_still_to_revoke_is_revoked_by_another() {
    let mut scene = scene().await;
    let signed_in = sign_in(&scene.survivor.client, &scene.provider, 0).await;
    let gate = scene.provider.hold(Endpoint::Revocation);
    let by = Some(v1::end_session_request::By::SessionId(signed_in.id.clone()));
    let request = v1::EndSessionRequest {
        by,
        ..Default::default()
    };
    let ended = scene.victims_client.end_session(request).await.unwrap();
    assert!(ended.into_inner().ended);
    scene.provider.wait_for_held(Endpoint::Revocation, 1).await;
    scene.victim.kill();
    // The request ended with the process, before the provider acted.
    scene.provider.wait_for_held(Endpoint::Revocation, 0).await;
    assert!(scene.provider.knows_refresh_token(&signed_in.refresh_token));
    gate.release();
    eventually("the revocation", || {
        !scene.provider.knows_refresh_token(&signed_in.refresh_token)
    })
    .await;
}
