//! An ending, interleaved with a refresh, roll, update or creation: the session stays ended, and the provider
//! has no working refresh token.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::secret::{Reloading, Secret};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use oidc::TokenHint;
use oidc::{
    ExpectedRefreshedIdToken, GrantError, IdToken, IdTokenError, OAuthError, ProviderError, RefreshedTokens,
    RevocationResult,
};
use prometheus::Registry;
use session_svc::refresh::ports::TokenRefreshError;
use session_svc::refresh::ports::WaitingCaller;
use session_svc::refresh::{LEASE, Measures, RefreshProvider, Refresher};
use session_svc::session::{
    AccessToken, Cause, Claims, Handle, Lifetime, Scope, SessionId, SessionTokens, SessionValues, StoredToken,
};
use session_svc::session_store::SessionStore;
use session_svc::sessions::{EndAll, NewSession, OfflineTokens, SessionUpdate, Sessions, SessionsError};
use session_svc::store::KeyValueStore;
use session_svc::vault::{KeyRing, Vault};

use super::plain_store::PlainStore;
use super::support::{KEY, START_MS, limits};
use super::turns::{Turn, TurnStore, Turns, let_others_go_on};

const ISSUER: &str = "https://issuer.example";
const SUBJECT: &str = "alice";
const SID: &str = "sid-1";
const ID_TOKEN: &str = "e30.e30.c2ln";

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    One,
    AllOfTheSid,
    AllOfThePerson,
}

const ENDINGS: [Ending; 3] = [Ending::One, Ending::AllOfTheSid, Ending::AllOfThePerson];

/// A provider that rotates, detects reuse and revokes; a grant takes two steps, request and answer.
#[derive(Clone)]
struct StepProvider {
    works: Arc<Mutex<BTreeSet<String>>>,
    turn: Option<Turn>,
    /// Whether the provider issues ID tokens, and how often their key is not known yet.
    gives_id_tokens: bool,
    lags: Arc<AtomicUsize>,
}

impl StepProvider {
    async fn step(&self) {
        if let Some(turn) = &self.turn {
            turn.wait().await;
        }
    }
}

#[async_trait]
impl RefreshProvider for StepProvider {
    /// The machine that tests may be busy.
    fn wait_limit(&self) -> Duration {
        Duration::from_secs(60)
    }

    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        self.step().await;
        let rotated = format!("{refresh_token}+");
        let done = {
            let mut works = self.works.lock().unwrap();
            works.remove(refresh_token) && works.insert(rotated.clone())
        };
        self.step().await;
        if !done {
            return Err(GrantError::Refused(OAuthError::new("invalid_grant")));
        }
        Ok(RefreshedTokens {
            access_token: format!("access of {rotated}"),
            token_type: "Bearer".to_owned(),
            scope: None,
            expires_at: now + 3_600,
            lifetime_secs: 3_600,
            refresh_token: Some(rotated),
            id_token: self.gives_id_tokens.then(|| ID_TOKEN.to_owned()),
        })
    }

    async fn validate(
        &self,
        _: &str,
        _: &ExpectedRefreshedIdToken<'_>,
        _: u64,
    ) -> Result<IdToken, IdTokenError> {
        let lags = |lags: usize| lags.checked_sub(1);
        if self
            .lags
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, lags)
            .is_ok()
        {
            return Err(IdTokenError::UnknownKey);
        }
        Ok(IdToken {
            claims: serde_json::Map::new(),
            iss: ISSUER.to_owned(),
            sub: SUBJECT.to_owned(),
            sid: None,
            auth_time: None,
            iat: START_MS / 1_000,
            session_expiry: None,
        })
    }

    async fn revoke(
        &self,
        refresh_token: &str,
        _: TokenHint,
        _: u64,
    ) -> Result<RevocationResult, ProviderError> {
        self.works.lock().unwrap().remove(refresh_token);
        Ok(RevocationResult::Done)
    }
}

/// One store and one provider, new for each run.
struct Scene {
    store: PlainStore,
    works: Arc<Mutex<BTreeSet<String>>>,
    keys: Reloading<KeyRing>,
    gives_id_tokens: bool,
    lags: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        Self {
            store: PlainStore::default(),
            works: Arc::default(),
            keys: Reloading::new(KeyRing::parse(&[Secret::new(KEY.to_owned())]).unwrap()),
            gives_id_tokens: false,
            lags: Arc::default(),
        }
    }

    /// One replica's service, with its own access to the store.
    fn service(&self, store: Arc<dyn KeyValueStore>, turn: Option<Turn>) -> Sessions {
        let lifetime = Lifetime {
            rolling_ms: 86_400_000,
            absolute_ms: 604_800_000,
            roll_interval_ms: 0,
        };
        let session_store = SessionStore::new(store, Arc::new(Vault::new(self.keys.clone())), lifetime);
        let provider = StepProvider {
            works: Arc::clone(&self.works),
            turn,
            gives_id_tokens: self.gives_id_tokens,
            lags: Arc::clone(&self.lags),
        };
        let measures = Measures::new(&Registry::new()).unwrap();
        let refresher = Refresher::new(session_store.clone(), provider, LEASE, 65_536, measures);
        Sessions::new(session_store, Arc::new(refresher), limits())
    }

    /// The service outside of the directed steps.
    fn observer(&self) -> Sessions {
        self.service(Arc::new(self.store.clone()), None)
    }

    fn actor(&self, turn: &Turn, writes_blindly: bool) -> Sessions {
        let store = TurnStore {
            inner: Arc::new(self.store.clone()),
            turn: turn.clone(),
            writes_blindly,
        };
        self.service(Arc::new(store), Some(turn.clone()))
    }

    /// The session is gone except for its marks, and no refresh token works.
    async fn is_over(&self, handle: Option<Handle>) -> bool {
        // Separate tasks revoke tokens and remove the notes.
        let_others_go_on(64).await;
        let observer = self.observer();
        let gone = match handle {
            Some(handle) => matches!(observer.get(handle).await, Err(SessionsError::Missing)),
            None => true,
        };
        let listed = observer
            .list(ISSUER, SUBJECT, 10, "")
            .await
            .unwrap()
            .sessions
            .len();
        gone && listed == 0 && !self.store.lists_any() && self.works.lock().unwrap().is_empty()
    }

    /// A user who has just signed in, with an ID token of that age.
    fn new_session(&self, issued_at_secs: u64) -> NewSession {
        self.works.lock().unwrap().insert("refresh".to_owned());
        let claims = serde_json::json!({"sub": SUBJECT, "iat": issued_at_secs});
        let id_token = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let tokens = SessionTokens {
            access: Some(AccessToken {
                value: StoredToken::new("access".to_owned()),
                token_type: "Bearer".to_owned(),
                expires_at_ms: START_MS,
                lifetime_ms: AccessToken::kept_lifetime_ms(0),
            }),
            scope: Scope::parse("openid"),
            refresh: Some(StoredToken::new("refresh".to_owned())),
            id_token: Some(StoredToken::new(id_token)),
            generation: 1,
            ..SessionTokens::default()
        };
        NewSession {
            values: SessionValues {
                issuer: ISSUER.to_owned(),
                subject: SUBJECT.to_owned(),
                user: Claims::parse(claims.to_string()).unwrap(),
                tokens,
                provider_sid: Some(SID.to_owned()),
                ..SessionValues::default()
            },
            replaces: None,
            request: Some(("request-1".to_owned(), [7; 32])),
            received_at_ms: None,
        }
    }
}

/// An ID token from well before the ending.
const ISSUED_BEFORE: u64 = START_MS / 1_000 - 10;

async fn end(sessions: &Sessions, ending: Ending, handle: Handle) {
    let all = EndAll {
        issuer: ISSUER.to_owned(),
        subject: Some(SUBJECT.to_owned()).filter(|_| ending == Ending::AllOfThePerson),
        provider_sid: Some(SID.to_owned()).filter(|_| ending == Ending::AllOfTheSid),
        everyone: false,
        except: None,
        cause: Cause::Other,
        offline_tokens: OfflineTokens::Revoke,
        existing_only: false,
        once: None,
        order_age_ms: None,
        answer_by: None,
    };
    match ending {
        Ending::One => {
            _ = sessions
                .end_session(handle, Cause::Other, OfflineTokens::Revoke)
                .await
                .unwrap()
        }
        Ending::AllOfTheSid | Ending::AllOfThePerson => _ = sessions.end_all(&all).await.unwrap(),
    }
}

/// A caller without a name, whose call begins now.
fn nobody() -> WaitingCaller<'static> {
    WaitingCaller {
        caller: "",
        since: tokio::time::Instant::now(),
    }
}

/// The concurrent operation on the session.
type Besides = fn(Sessions, Handle) -> BoxFuture<'static, Result<(), SessionsError>>;

fn refresh(sessions: Sessions, handle: Handle) -> BoxFuture<'static, Result<(), SessionsError>> {
    async move {
        let session = sessions.get(handle).await?;
        sessions
            .access_token(session, &[], false, nobody())
            .await
            .map(drop)
    }
    .boxed()
}

fn roll(sessions: Sessions, handle: Handle) -> BoxFuture<'static, Result<(), SessionsError>> {
    async move { sessions.roll(handle, None, "").await.map(drop) }.boxed()
}

fn update(sessions: Sessions, handle: Handle) -> BoxFuture<'static, Result<(), SessionsError>> {
    let update = SessionUpdate {
        attributes: Some(Claims::default()),
        ..SessionUpdate::default()
    };
    async move { sessions.update(handle, update).await.map(drop) }.boxed()
}

/// Runs every interleaving of an ending with something else. Returns their number, and in how many the
/// session did not stay ended.
async fn explore(ending: Ending, besides: Besides, writes_blindly: bool) -> (usize, usize) {
    explore_with(ending, besides, writes_blindly, None).await
}

/// How long the key of an ID token stays unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lags {
    /// For one check: the refresh that stores the pending answer validates it.
    ForOneLook,
    /// For every check of the refresh that stored the pending answer: another refresh validates it.
    ForOneRefresh,
}

/// Checks of a pending answer in one refresh: one, then three after a pause each.
const LOOKS: usize = 4;

async fn explore_with(
    ending: Ending,
    besides: Besides,
    writes_blindly: bool,
    lags: Option<Lags>,
) -> (usize, usize) {
    let mut turns = Turns::new();
    let mut not_over = 0;
    loop {
        let scene = Scene {
            gives_id_tokens: lags.is_some(),
            ..Scene::new()
        };
        let created = scene
            .observer()
            .create(scene.new_session(ISSUED_BEFORE))
            .await
            .unwrap();
        let handle = created.session.handle;
        match lags {
            None => {}
            Some(Lags::ForOneLook) => scene.lags.store(1, Ordering::SeqCst),
            Some(Lags::ForOneRefresh) => {
                scene.lags.store(LOOKS, Ordering::SeqCst);
                let observer = scene.observer();
                let session = observer.get(handle).await.unwrap();
                let kept = observer.access_token(session, &[], false, nobody()).await;
                assert!(
                    matches!(
                        kept,
                        Err(SessionsError::Tokens(TokenRefreshError::ProviderUnavailable))
                    ),
                    "{kept:?}"
                );
            }
        }
        let run = turns.begin();
        let [one, two] = [0, 1].map(|at| scene.actor(&run.turns[at], writes_blindly));
        let ends = async move { end(&one, ending, handle).await };
        let other = async move {
            // Before the ending the call succeeds. After it there is no session. No other answer is allowed.
            let said = besides(two, handle).await;
            let is_gone = |error: &SessionsError| {
                matches!(
                    error,
                    SessionsError::Missing | SessionsError::Tokens(TokenRefreshError::Missing)
                )
            };
            assert!(
                writes_blindly || said.as_ref().err().is_none_or(is_gone),
                "{ending:?}: {said:?}"
            );
        };
        let more = turns.direct(run, [ends.boxed(), other.boxed()]).await;
        not_over += usize::from(!scene.is_over(Some(handle)).await);
        if !more {
            return (turns.count(), not_over);
        }
    }
}

async fn stays_ended(besides: Besides, at_least: usize) {
    for ending in ENDINGS {
        let (orders, not_over) = explore(ending, besides, false).await;
        println!("{ending:?}: {orders} orders");
        assert!(orders >= at_least, "{ending:?}: {orders} orders are not all");
        assert_eq!(not_over, 0, "{ending:?}: of {orders} orders");
    }
}

#[tokio::test]
async fn an_end_during_a_refresh_stays_in_every_interleaving() {
    stays_ended(refresh, 300).await;
}

/// The answer is pending first and validated later. The time between is virtual.
#[tokio::test(start_paused = true)]
async fn an_end_during_a_refresh_that_is_validated_later_stays_in_every_interleaving() {
    for (lags, at_least) in [(Lags::ForOneLook, 150), (Lags::ForOneRefresh, 50)] {
        for ending in ENDINGS {
            let (orders, not_over) = explore_with(ending, refresh, false, Some(lags)).await;
            println!("{ending:?}: {orders} orders");
            assert!(orders >= at_least, "{ending:?}: {orders} orders are not all");
            assert_eq!(not_over, 0, "{ending:?}: of {orders} orders");
        }
    }
}

#[tokio::test]
async fn an_end_during_a_roll_stays_in_every_interleaving() {
    stays_ended(roll, 15).await;
}

#[tokio::test]
async fn an_end_during_an_update_stays_in_every_interleaving() {
    stays_ended(update, 15).await;
}

#[tokio::test]
async fn a_store_without_compare_and_swap_is_found_out() {
    for besides in [refresh as Besides, roll, update] {
        let (orders, not_over) = explore(Ending::One, besides, true).await;
        assert!(not_over > 0, "none of {orders} orders shows it");
    }
}

/// A back-channel logout that arrives while its session is being created, in every order.
#[tokio::test]
async fn an_end_of_all_during_a_creation_ends_the_new_session_in_every_interleaving() {
    // A request name multiplies the orders, without new ones for the person's list.
    let request = Some(("request-1".to_owned(), [7; 32]));
    for (ending, request, received_at_ms) in [
        (Ending::AllOfTheSid, request, Some(START_MS)),
        (Ending::AllOfThePerson, None, Some(START_MS)),
    ] {
        let mut turns = Turns::new();
        loop {
            let scene = Scene::new();
            let run = turns.begin();
            let [one, two] = [0, 1].map(|at| scene.actor(&run.turns[at], false));
            let new = NewSession {
                request: request.clone(),
                received_at_ms,
                ..scene.new_session(ISSUED_BEFORE)
            };
            let nobody = SessionId::from_bytes([9; 16]).handle();
            let ends = async move { end(&one, ending, nobody).await };
            let creates = async move {
                let created = two.create(new).await;
                assert!(
                    matches!(created, Ok(_) | Err(SessionsError::Missing)),
                    "{created:?}"
                );
            };
            let more = turns.direct(run, [ends.boxed(), creates.boxed()]).await;
            assert!(scene.is_over(None).await, "{ending:?}, order {}", turns.count());
            if !more {
                break;
            }
        }
        println!("{ending:?}: {} orders", turns.count());
        assert!(turns.count() > 300, "{} orders are not all", turns.count());
    }
}

/// A creation is repeated because its answer was lost, while the session it made ends.
#[tokio::test]
async fn an_end_during_a_repeated_creation_stays_in_every_interleaving() {
    let mut turns = Turns::new();
    loop {
        let scene = Scene::new();
        let created = scene
            .observer()
            .create(scene.new_session(ISSUED_BEFORE))
            .await
            .unwrap();
        let handle = created.session.handle;
        let run = turns.begin();
        let [one, two] = [0, 1].map(|at| scene.actor(&run.turns[at], false));
        let again = scene.new_session(ISSUED_BEFORE);
        let ends = async move { end(&one, Ending::One, handle).await };
        let creates = async move {
            let created = two.create(again).await;
            assert!(
                matches!(created, Ok(_) | Err(SessionsError::Missing)),
                "{created:?}"
            );
        };
        let more = turns.direct(run, [ends.boxed(), creates.boxed()]).await;
        assert!(scene.is_over(Some(handle)).await, "order {}", turns.count());
        if !more {
            break;
        }
    }
    println!("{} orders", turns.count());
    assert!(turns.count() > 100, "{} orders are not all", turns.count());
}
