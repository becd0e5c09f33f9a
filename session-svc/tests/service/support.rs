//! Two services that share one store and one provider, in this process, each on a port of its own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::clock::ManualClock;
use chassis::readiness::Readiness;
use chassis::runtime::{Runtime, Workers};
use chassis::secret::{Reloading, Secret};
use oidc::TokenHint;
use oidc::{
    ExpectedRefreshedIdToken, GrantError, IdToken, IdTokenError, OAuthError, ProviderError, RefreshedTokens,
    RevocationResult,
};
use prometheus::Registry;
use session_proto::v1;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_svc::receiver::TransmittersFile;
use session_svc::refresh::RefreshProvider;
use session_svc::session::Lifetime;
use session_svc::sessions::SessionLimits;
use session_svc::start::{AccessPolicy, ServiceParts, serve};
use session_svc::store::KeyValueStore;
use session_svc::store::embedded::EmbeddedStore;
use session_svc::vault::KeyRing;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

pub(crate) use crate::requests::*;

pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const START_MS: u64 = 1_700_000_000_000;

pub(crate) type Client = SessionServiceClient<Channel>;

/// The provider's answer to the next refresh; after the last it returns fresh tokens.
pub(crate) enum Says {
    Tokens(RefreshedTokens),
    Refuses(&'static str),
    Fails,
    GivesNothing,
}

/// A scripted provider that counts its calls.
#[derive(Clone)]
pub(crate) struct TestProvider(Arc<Inner>);

struct Inner {
    says: Mutex<VecDeque<Says>>,
    id_token: Mutex<Option<IdTokenError>>,
    used: Mutex<Vec<String>>,
    revoked: watch::Sender<Vec<String>>,
    grants: watch::Sender<usize>,
    open: watch::Sender<bool>,
    reused: AtomicUsize,
}

impl TestProvider {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            says: Mutex::default(),
            id_token: Mutex::new(None),
            used: Mutex::default(),
            revoked: watch::Sender::new(Vec::new()),
            grants: watch::Sender::new(0),
            open: watch::Sender::new(true),
            reused: AtomicUsize::new(0),
        }))
    }

    pub(crate) fn says(&self, says: Says) {
        self.0.says.lock().unwrap().push_back(says);
    }

    pub(crate) fn refuses_id_token(&self, error: IdTokenError) {
        *self.0.id_token.lock().unwrap() = Some(error);
    }

    pub(crate) fn grants(&self) -> usize {
        *self.0.grants.borrow()
    }

    /// How often a refresh token was used a second time.
    pub(crate) fn reused(&self) -> usize {
        self.0.reused.load(Ordering::SeqCst)
    }

    /// Holds refreshes, or releases them.
    pub(crate) fn open(&self, open: bool) {
        self.0.open.send_replace(open);
    }

    pub(crate) async fn wait_for_grants(&self, count: usize) {
        let mut grants = self.0.grants.subscribe();
        within(grants.wait_for(|grants| *grants >= count)).await.unwrap();
    }

    pub(crate) fn has_revoked(&self, token: &str) -> bool {
        self.0.revoked.borrow().iter().any(|other| other == token)
    }

    pub(crate) async fn wait_for_revoked(&self, token: &str) {
        let mut revoked = self.0.revoked.subscribe();
        within(revoked.wait_for(|revoked| revoked.iter().any(|other| other == token)))
            .await
            .unwrap();
    }
}

#[async_trait]
impl RefreshProvider for TestProvider {
    fn issuer(&self) -> Option<&str> {
        Some(ISSUER)
    }

    /// The machine that tests may be busy.
    fn wait_limit(&self) -> Duration {
        Duration::from_secs(60)
    }

    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        self.0.grants.send_modify(|grants| *grants += 1);
        let number = self.grants();
        let mut open = self.0.open.subscribe();
        open.wait_for(|open| *open).await.unwrap();
        let says = self.0.says.lock().unwrap().pop_front();
        let rotates = |says: &Option<Says>| matches!(says, None | Some(Says::Tokens(_)));
        if rotates(&says) {
            let mut used = self.0.used.lock().unwrap();
            if used.iter().any(|other| other == refresh_token) {
                self.0.reused.fetch_add(1, Ordering::SeqCst);
            }
            used.push(refresh_token.to_owned());
        }
        match says {
            None => Ok(tokens(number, now)),
            Some(Says::Tokens(tokens)) => Ok(tokens),
            Some(Says::Refuses(error)) => Err(GrantError::Refused(OAuthError::new(error))),
            Some(Says::GivesNothing) => Err(GrantError::Unusable("no access_token")),
            Some(Says::Fails) => Err(GrantError::Transient(ProviderError::Timeout("token_endpoint"))),
        }
    }

    async fn validate(
        &self,
        raw: &str,
        expected: &ExpectedRefreshedIdToken<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        if let Some(error) = self.0.id_token.lock().unwrap().take() {
            return Err(error);
        }
        let payload = URL_SAFE_NO_PAD.decode(raw.split('.').nth(1).unwrap());
        let claims = serde_json::from_slice(&payload.unwrap()).unwrap();
        let (iss, sub) = (expected.iss.to_owned(), expected.sub.to_owned());
        Ok(IdToken {
            claims,
            iss,
            sub,
            sid: None,
            auth_time: None,
            iat: now,
            session_expiry: None,
        })
    }

    async fn revoke(
        &self,
        refresh_token: &str,
        _: TokenHint,
        _now: u64,
    ) -> Result<RevocationResult, ProviderError> {
        self.0
            .revoked
            .send_modify(|revoked| revoked.push(refresh_token.to_owned()));
        Ok(RevocationResult::Done)
    }
}

/// Fresh tokens: the access token lives an hour, the refresh token is rotated.
pub(crate) fn tokens(number: usize, now: u64) -> RefreshedTokens {
    RefreshedTokens {
        access_token: format!("access-{number}"),
        token_type: "Bearer".to_owned(),
        scope: None,
        expires_at: now + 3_600,
        lifetime_secs: 3_600,
        refresh_token: Some(format!("refresh-{number}")),
        id_token: None,
    }
}

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: EmbeddedStore,
    pub(crate) provider: TestProvider,
    pub(crate) one: Client,
    pub(crate) two: Client,
    /// Where the two services listen.
    pub(crate) addresses: [String; 2],
    shutdown: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) const HOUR_MS: u64 = 3_600_000;

pub(crate) fn lifetime() -> Lifetime {
    Lifetime {
        rolling_ms: 24 * HOUR_MS,
        absolute_ms: 7 * 24 * HOUR_MS,
        roll_interval_ms: 60_000,
    }
}

pub(crate) fn limits() -> SessionLimits {
    SessionLimits {
        revalidate_ms: 0,
        refresh_lease: session_svc::refresh::LEASE,
        max_bytes: 4_096,
        max_per_subject: 0,
        operator_search: false,
        watch_heartbeat: Duration::from_millis(20),
    }
}

pub(crate) async fn world() -> World {
    world_with(limits()).await
}

pub(crate) async fn world_with(limits: SessionLimits) -> World {
    let clock = ManualClock::new(START_MS);
    let store = EmbeddedStore::in_memory(Arc::new(clock.clone()), 30_000).unwrap();
    let (provider, shutdown) = (TestProvider::new(), CancellationToken::new());
    let start = |key| {
        let store = Arc::new(store.clone());
        address_of_service(store, &provider, &clock, &shutdown, limits, lifetime(), key, None)
    };
    let addresses = [start("ab").await, start("ab").await];
    let connect = |address: &String| SessionServiceClient::connect(address.clone());
    let one = connect(&addresses[0]).await.unwrap();
    let two = connect(&addresses[1]).await.unwrap();
    World {
        clock,
        store,
        provider,
        one,
        two,
        addresses,
        shutdown,
    }
}

impl World {
    /// Another service on the same store, with its own durations and key.
    pub(crate) async fn another(&self, lifetime: Lifetime, key: &str) -> Client {
        self.on(Arc::new(self.store.clone()), lifetime, key).await
    }

    /// Another service on another store, or on another route to this one.
    pub(crate) async fn on(&self, store: Arc<dyn KeyValueStore>, lifetime: Lifetime, key: &str) -> Client {
        service(
            store,
            &self.provider,
            &self.clock,
            &self.shutdown,
            limits(),
            lifetime,
            key,
            None,
        )
        .await
    }

    /// Another service on the same store, which accepts events from the transmitters of a file.
    pub(crate) async fn listening(&self, store: Arc<dyn KeyValueStore>, file: &str) -> Client {
        let file = session_svc::settings::signals::parse(file).expect("a file without mistakes");
        service(
            store,
            &self.provider,
            &self.clock,
            &self.shutdown,
            limits(),
            lifetime(),
            "ab",
            file.transmitters,
        )
        .await
    }

    /// Another service on the same store, with its own limits.
    pub(crate) async fn limited(&self, limits: SessionLimits) -> Client {
        self.limited_on(Arc::new(self.store.clone()), limits).await
    }

    /// Another service on the same store, with its own limits and key.
    pub(crate) async fn limited_with_key(&self, limits: SessionLimits, key: &str) -> Client {
        let (provider, clock, shutdown) = (&self.provider, &self.clock, &self.shutdown);
        let store = Arc::new(self.store.clone());
        service(store, provider, clock, shutdown, limits, lifetime(), key, None).await
    }

    /// Another service with its own limits.
    pub(crate) async fn limited_on(&self, store: Arc<dyn KeyValueStore>, limits: SessionLimits) -> Client {
        let (provider, clock) = (&self.provider, &self.clock);
        service(
            store,
            provider,
            clock,
            &self.shutdown,
            limits,
            lifetime(),
            "ab",
            None,
        )
        .await
    }

    pub(crate) async fn create(&mut self, request: v1::CreateSessionRequest) -> v1::CreateSessionResponse {
        self.one.create_session(request).await.unwrap().into_inner()
    }
}

#[expect(clippy::too_many_arguments, reason = "what a service is made of")]
async fn service(
    store: Arc<dyn KeyValueStore>,
    provider: &TestProvider,
    clock: &ManualClock,
    shutdown: &CancellationToken,
    limits: SessionLimits,
    lifetime: Lifetime,
    key: &str,
    transmitters: Option<TransmittersFile>,
) -> Client {
    let address = address_of_service(
        store,
        provider,
        clock,
        shutdown,
        limits,
        lifetime,
        key,
        transmitters,
    );
    SessionServiceClient::connect(address.await).await.unwrap()
}

#[expect(clippy::too_many_arguments, reason = "what a service is made of")]
async fn address_of_service(
    store: Arc<dyn KeyValueStore>,
    provider: &TestProvider,
    clock: &ManualClock,
    shutdown: &CancellationToken,
    limits: SessionLimits,
    lifetime: Lifetime,
    key: &str,
    transmitters: Option<TransmittersFile>,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let keys: Vec<_> = key.split(',').map(|key| Secret::new(key.repeat(32))).collect();
    let parts = ServiceParts {
        store,
        keys: Reloading::new(KeyRing::parse(&keys).unwrap()),
        provider: provider.clone(),
        lifetime,
        transmitters,
        receivers: None,
        limits,
    };
    let runtime = Runtime {
        clock: Arc::new(clock.clone()),
        shutdown: shutdown.clone(),
        readiness: Readiness::new(),
        metrics: Registry::new(),
        workers: Workers::here(),
    };
    tokio::spawn(async move {
        serve(AccessPolicy::anyone(), parts, listener, runtime)
            .await
            .unwrap()
    });
    address
}

/// Nothing in these tests takes this long.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work)
        .await
        .expect("within 20 seconds")
}
