//! Waiting for another replica: woken by its write, without looking in a loop. The time is tokio's, and stands still
//! while anything can go on: what took none was not waited for by the clock.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::clock::ManualClock;
use chassis::secret::{Reloading, Secret};
use oidc::{ExpectedOfRefresh, IdToken, IdTokenError, ProviderError, RefreshError, RefreshedTokens, Revoked};
use prometheus::Registry;
use session_svc::refresh::{DEFAULT_LEASE, Measures, Provider, Refresher};
use session_svc::session::{
    AccessToken, Device, Handle, Lifetime, Scope, Session, SessionId, State, Token, TokenSet,
};
use session_svc::sessions::keeper::Keeper;
use session_svc::sessions::ports::{Renew as _, RenewError};
use session_svc::store::memory::MemoryStore;
use session_svc::vault::{KeyRing, Vault};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::{KEY, START_MS};
use crate::turns::{Turn, TurnStore};

/// More than any chain of tasks that wake one another.
const LOOKS: usize = 100;

/// Answers when it is let, with tokens or that it cannot be reached.
#[derive(Clone)]
struct Gate {
    open: Arc<watch::Sender<Option<bool>>>,
    asked: Arc<watch::Sender<usize>>,
}

#[async_trait]
impl Provider for Gate {
    async fn refresh(&self, _: &str, now: u64) -> Result<RefreshedTokens, RefreshError> {
        self.asked.send_modify(|asked| *asked += 1);
        let mut open = self.open.subscribe();
        let works = open.wait_for(Option::is_some).await.unwrap().unwrap();
        if !works {
            let endpoint = "token_endpoint";
            return Err(RefreshError::Transient(ProviderError::Timeout { endpoint }));
        }
        Ok(RefreshedTokens {
            access_token: "fresh".to_owned(),
            token_type: "Bearer".to_owned(),
            scope: None,
            expires_at: now + 3_600,
            refresh_token: Some("rotated".to_owned()),
            id_token: None,
        })
    }

    async fn check(&self, _: &str, _: &ExpectedOfRefresh<'_>, _: u64) -> Result<IdToken, IdTokenError> {
        unreachable!("it gives no ID tokens")
    }

    async fn revoke(&self, _: &str, _: u64) -> Result<Revoked, ProviderError> {
        Ok(Revoked::NotOffered)
    }
}

/// One replica that refreshes, and one that waits for it.
struct Scene {
    gate: Gate,
    handle: Handle,
    winner: JoinHandle<Result<Session, RenewError>>,
    waiter: JoinHandle<Result<Session, RenewError>>,
    /// The waiter's steps at the store.
    steps: Turn,
}

async fn scene(tells_events: bool) -> Scene {
    let store = MemoryStore::new(Arc::new(ManualClock::new(START_MS)), 100);
    let keys = Reloading::new(KeyRing::parse(&[Secret::new(KEY.to_owned())]).unwrap());
    let gate = Gate {
        open: Arc::new(watch::Sender::new(None)),
        asked: Arc::new(watch::Sender::new(0)),
    };
    let lifetime = Lifetime {
        rolling_ms: 86_400_000,
        absolute_ms: 604_800_000,
        roll_interval_ms: 0,
    };
    let replica = |turn: Turn| {
        let store = TurnStore {
            inner: store.clone(),
            turn,
            writes_blindly: false,
            tells_events,
        };
        let keeper = Keeper::new(Arc::new(store), Arc::new(Vault::new(keys.clone())), lifetime);
        let measures = Measures::new(&Registry::new()).unwrap();
        let refresher = Refresher::new(keeper.clone(), gate.clone(), DEFAULT_LEASE, measures);
        (keeper, refresher)
    };
    let steps = Turn::free();
    let ((keeper, first), (_, second)) = (replica(Turn::free()), replica(steps.clone()));
    let session = expired();
    keeper.insert(&session, 65_536).await.unwrap();
    let refreshing = |refresher: Refresher| {
        let session = session.clone();
        tokio::spawn(async move { refresher.refreshed(session).await })
    };
    let winner = refreshing(first);
    gate.asked
        .subscribe()
        .wait_for(|asked| *asked == 1)
        .await
        .unwrap();
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

/// Lets everything happen that needs no time.
async fn settle() {
    for _ in 0..LOOKS {
        tokio::task::yield_now().await;
    }
}

fn expired() -> Session {
    let device = Device::default();
    Session {
        handle: SessionId::from_bytes([7; 16]).handle(),
        issuer: "https://issuer.example".to_owned(),
        subject: "alice".to_owned(),
        user: Default::default(),
        attributes: Default::default(),
        tokens: TokenSet {
            access: Some(AccessToken {
                value: Token::new("old".to_owned()),
                token_type: "Bearer".to_owned(),
                expires_at_ms: START_MS,
            }),
            scope: Scope::parse("openid"),
            refresh: Some(Token::new("refresh".to_owned())),
            id_token: None,
            generation: 1,
            unjudged: None,
        },
        provider_sid: None,
        earlier_sids: Vec::new(),
        authenticated_at_ms: Some(START_MS),
        created_at_ms: START_MS,
        rolled_at_ms: START_MS,
        not_after_ms: None,
        created_on: device.clone(),
        last_seen_on: device,
        state: State::Active,
        version: 1,
        carried: Default::default(),
    }
}

impl Scene {
    /// Both replicas end with the fresh token; gives how long the waiter took from now.
    async fn both_get_it(self) -> Duration {
        let began = Instant::now();
        let waited = self.waiter.await.unwrap().unwrap();
        let took = began.elapsed();
        let won = self.winner.await.unwrap().unwrap();
        assert_eq!((waited.handle, &waited.tokens), (self.handle, &won.tokens));
        assert_eq!(waited.tokens.access.unwrap().value.text().expose(), "fresh");
        assert_eq!(*self.gate.asked.borrow(), 1, "one grant");
        took
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_woken_by_the_winners_write_and_not_by_the_clock() {
    let scene = scene(true).await;
    scene.gate.open.send_replace(Some(true));
    assert_eq!(scene.both_get_it().await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_looks_about_once_a_second_however_long_it_takes() {
    const SECONDS: usize = 40;
    let scene = scene(true).await;
    let before = scene.steps.taken();
    // Virtual time: nothing waits for it.
    tokio::time::sleep(Duration::from_secs(SECONDS as u64)).await;
    let looks = scene.steps.taken() - before;
    assert!((SECONDS..=2 * SECONDS + 4).contains(&looks), "{looks} steps");
    scene.gate.open.send_replace(Some(true));
    assert_eq!(scene.both_get_it().await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_hears_nothing_looks_for_itself() {
    let scene = scene(false).await;
    scene.gate.open.send_replace(Some(true));
    let took = scene.both_get_it().await;
    assert!(
        took > Duration::ZERO && took <= Duration::from_millis(500),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_asks_itself_when_the_other_met_an_outage() {
    let scene = scene(true).await;
    scene.gate.open.send_replace(Some(false));
    let failed = scene.winner.await.unwrap();
    assert_eq!(failed.unwrap_err(), RenewError::ProviderUnavailable);
    scene.gate.open.send_replace(Some(true));
    let session = scene.waiter.await.unwrap().unwrap();
    assert_eq!(session.tokens.access.unwrap().value.text().expose(), "fresh");
    assert_eq!(*scene.gate.asked.borrow(), 2);
}
