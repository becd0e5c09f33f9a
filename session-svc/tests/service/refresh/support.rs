//! Replicas of the service in this process, their provider, and sessions of users who signed in there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis::clock::{Clock, ManualClock, SystemClock};
use chassis::readiness::Readiness;
use chassis::runtime::{Runtime, Workers};
use chassis::secret::{Reloading, Secret};
use oidc::{ClientAuth, ClientSecret, ProviderSettings, RelyingParty};
use prometheus::Registry;
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Claims, ScriptedProvider};
use session_proto::error::reason_of;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason};
use session_svc::refresh::{LEASE, RefreshProviders};
use session_svc::session::Lifetime;
use session_svc::sessions::SessionLimits;
use session_svc::start::{AccessPolicy, ServiceParts, serve};
use session_svc::store::embedded::EmbeddedStore;
use session_svc::store::url::StoreSettings;
use session_svc::store::{KeyValueStore, open};
use session_svc::vault::KeyRing;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::Channel;

pub(crate) const START_MS: u64 = 1_700_000_000_000;
pub(crate) const SCOPE: &str = "openid email";

/// The key all replicas seal with, as the setting takes it.
pub(crate) const KEY: &str = "abababababababababababababababababababababababababababababababab";

/// Nothing in these tests takes this long.
const WAIT_MAX: Duration = Duration::from_secs(90);

pub(crate) type Client = SessionServiceClient<Channel>;

/// One service on its own port; stopped when dropped.
pub(crate) struct Replica {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) metrics: Registry,
    pub(crate) shutdown: CancellationToken,
    pub(crate) serving: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) fn limits() -> SessionLimits {
    SessionLimits {
        revalidate_ms: 0,
        refresh_lease: LEASE,
        max_bytes: 65_536,
        max_per_subject: 0,
        operator_search: false,
        watch_heartbeat: Duration::from_millis(300),
    }
}

/// The client registered at the provider. Calls and callers have a minute: the machine may be busy.
pub(crate) fn relying_party(issuer: &str) -> RelyingParty {
    RelyingParty::new(provider_settings(issuer)).unwrap()
}

pub(crate) fn provider_settings(issuer: &str) -> ProviderSettings {
    let mut settings = ProviderSettings::new(issuer, CLIENT_ID);
    settings.credentials.auth = ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET.to_owned()));
    settings.http_timeout = Duration::from_secs(60);
    settings.refresh_timeout = Duration::from_secs(60);
    settings
}

pub(crate) async fn replica(
    store: Arc<dyn KeyValueStore>,
    clock: Arc<dyn Clock>,
    providers: impl Into<RefreshProviders>,
    limits: SessionLimits,
) -> Replica {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (shutdown, metrics) = (CancellationToken::new(), Registry::new());
    let parts = ServiceParts {
        transmitters: None,
        receivers: None,
        store,
        keys: Reloading::new(KeyRing::parse(&[Secret::new(KEY.to_owned())]).unwrap()),
        provider: providers.into(),
        lifetime: Lifetime {
            rolling_ms: 86_400_000,
            absolute_ms: 7 * 86_400_000,
            roll_interval_ms: 60_000,
        },
        limits,
    };
    let runtime = Runtime {
        clock,
        shutdown: shutdown.clone(),
        readiness: Readiness::new(),
        metrics: metrics.clone(),
        workers: Workers::here(),
    };
    let serving = tokio::spawn(async move {
        serve(AccessPolicy::anyone(), parts, listener, runtime)
            .await
            .unwrap()
    });
    let client = SessionServiceClient::connect(url.clone()).await.unwrap();
    Replica {
        client,
        url,
        metrics,
        shutdown,
        serving,
    }
}

/// Two replicas on one memory store under an owned clock.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: EmbeddedStore,
    pub(crate) provider: ScriptedProvider,
    pub(crate) one: Replica,
    pub(crate) two: Replica,
}

pub(crate) async fn world() -> World {
    world_with(limits()).await
}

pub(crate) async fn world_with(limits: SessionLimits) -> World {
    let provider = ScriptedProvider::start();
    let party = relying_party(provider.issuer());
    let (one, two) = (party.clone(), party);
    world_of(provider, limits, one, two).await
}

/// The same, with a separate route to the provider for each replica.
pub(crate) async fn world_of(
    provider: ScriptedProvider,
    limits: SessionLimits,
    one: impl Into<RefreshProviders>,
    two: impl Into<RefreshProviders>,
) -> World {
    let clock = ManualClock::new(START_MS);
    provider.script(|script| script.now = Some(START_MS / 1_000));
    let store = EmbeddedStore::in_memory(Arc::new(clock.clone()), 10_000).unwrap();
    let shared = || Arc::new(store.clone());
    let one = replica(shared(), Arc::new(clock.clone()), one, limits).await;
    let two = replica(shared(), Arc::new(clock.clone()), two, limits).await;
    World {
        clock,
        provider,
        one,
        two,
        store,
    }
}

impl World {
    /// Lets time pass here and at the provider.
    pub(crate) fn advance_ms(&self, ms: u64) {
        self.clock.advance_ms(ms);
        let now = self.clock.now_ms() / 1_000;
        self.provider.script(|script| script.now = Some(now));
    }

    /// A user signs in and gets a token for five minutes.
    pub(crate) async fn sign_in(&self) -> SignedIn {
        let expires_at_ms = self.clock.now_ms() + 300_000;
        sign_in(&self.one.client, &self.provider, expires_at_ms).await
    }

    /// Waits until the provider has exactly `count` revocations and nothing else.
    pub(crate) async fn wait_for_revocations(&self, count: usize) {
        self.provider
            .wait_for_calls(scripted_provider::Endpoint::Revocation, count)
            .await;
    }
}

/// A session, and the provider's tokens for it.
pub(crate) struct SignedIn {
    pub(crate) id: String,
    pub(crate) access_token: String,
    pub(crate) refresh_token: String,
    pub(crate) id_token: String,
}

pub(crate) async fn sign_in(client: &Client, provider: &ScriptedProvider, expires_at_ms: u64) -> SignedIn {
    let request = request(&provider.sign_in(SCOPE), provider.issuer(), expires_at_ms);
    signed_in(client, request).await
}

/// Begins a session.
pub(crate) async fn signed_in(client: &Client, request: v1::CreateSessionRequest) -> SignedIn {
    let tokens = request.tokens.clone().unwrap();
    let answer = client.clone().create_session(request).await.unwrap().into_inner();
    SignedIn {
        id: answer.session_id,
        access_token: tokens.access_token,
        refresh_token: tokens.refresh_token,
        id_token: tokens.id_token,
    }
}

/// A session from the provider's tokens.
pub(crate) fn request(tokens: &Claims, issuer: &str, expires_at_ms: u64) -> v1::CreateSessionRequest {
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    let user = serde_json::json!({"sub": "alice", "name": "Alice Example"});
    v1::CreateSessionRequest {
        issuer: issuer.to_owned(),
        user: user.to_string(),
        tokens: Some(v1::TokenSet {
            access_token: text("access_token"),
            scope: SCOPE.to_owned(),
            refresh_token: text("refresh_token"),
            id_token: text("id_token"),
            expires_at: Some(session_proto::timestamp::from_ms(expires_at_ms)),
            ..Default::default()
        }),
        provider_sid: text("sid"),
        ..Default::default()
    }
}

impl Replica {
    pub(crate) async fn token(&self, id: &str) -> Result<v1::GetAccessTokenResponse, Status> {
        self.ask(id, false).await
    }

    pub(crate) async fn forced(&self, id: &str) -> Result<v1::GetAccessTokenResponse, Status> {
        self.ask(id, true).await
    }

    async fn ask(&self, id: &str, force_refresh: bool) -> Result<v1::GetAccessTokenResponse, Status> {
        let request = v1::GetAccessTokenRequest {
            session_id: id.to_owned(),
            force_refresh,
            ..Default::default()
        };
        let answer = within(self.client.clone().get_access_token(request)).await;
        answer.map(tonic::Response::into_inner)
    }

    /// Asks in its own task.
    pub(crate) fn pending_call(&self, id: &str) -> JoinHandle<Result<v1::GetAccessTokenResponse, Status>> {
        self.asking_for(id, false)
    }

    /// Asks for another token in its own task.
    pub(crate) fn forcing(&self, id: &str) -> JoinHandle<Result<v1::GetAccessTokenResponse, Status>> {
        self.asking_for(id, true)
    }

    fn asking_for(
        &self,
        id: &str,
        force_refresh: bool,
    ) -> JoinHandle<Result<v1::GetAccessTokenResponse, Status>> {
        let mut client = self.client.clone();
        let request = v1::GetAccessTokenRequest {
            session_id: id.to_owned(),
            force_refresh,
            ..Default::default()
        };
        tokio::spawn(async move {
            let answer = client.get_access_token(request).await;
            answer.map(tonic::Response::into_inner)
        })
    }

    pub(crate) async fn session(&self, id: &str) -> Result<v1::Session, Status> {
        let request = v1::GetSessionRequest {
            by: Some(v1::get_session_request::By::SessionId(id.to_owned())),
        };
        let answer = self.client.clone().get_session(request).await?;
        Ok(*answer.into_inner().session.unwrap())
    }

    pub(crate) async fn roll(&self, id: &str) {
        let request = v1::RollSessionRequest {
            session_id: id.to_owned(),
            ..Default::default()
        };
        self.client.clone().roll_session(request).await.unwrap();
    }

    pub(crate) async fn end(&self, id: &str) -> v1::EndSessionResponse {
        let request = v1::EndSessionRequest {
            by: Some(v1::end_session_request::By::SessionId(id.to_owned())),
            ..Default::default()
        };
        self.client
            .clone()
            .end_session(request)
            .await
            .unwrap()
            .into_inner()
    }

    /// The counter's value for this outcome.
    pub(crate) fn counted(&self, name: &str, outcome: &str) -> u64 {
        let families = self.metrics.gather();
        let metric = families
            .iter()
            .filter(|family| family.name() == name)
            .flat_map(|family| family.get_metric())
            .find(|metric| metric.get_label().iter().any(|label| label.value() == outcome));
        metric.map_or(0, |metric| whole(metric.get_counter().get_value()))
    }

    /// How many refreshes had this outcome.
    pub(crate) fn refreshes(&self, outcome: &str) -> u64 {
        self.counted("session_refreshes_total", outcome)
    }

    /// How many calls wait for a refresh.
    pub(crate) fn waiting(&self) -> u64 {
        let families = self.metrics.gather();
        let family = families
            .iter()
            .find(|family| family.name() == "session_refresh_waiting");
        family.map_or(0, |family| whole(family.get_metric()[0].get_gauge().get_value()))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole and small"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

/// A Redis store at that address.
pub(crate) async fn store_at(url: &str, clock: Arc<dyn Clock>) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open(&settings, clock).await.unwrap()
}

/// A replica on its own connections to Redis.
pub(crate) async fn replica_at(url: &str, provider: &ScriptedProvider, limits: SessionLimits) -> Replica {
    let store = store_at(url, Arc::new(SystemClock)).await;
    let party = relying_party(provider.issuer());
    replica(store, Arc::new(SystemClock), party, limits).await
}

pub(crate) fn reason<T: std::fmt::Debug>(answer: Result<T, Status>) -> ErrorReason {
    let status = answer.unwrap_err();
    reason_of(&status).unwrap_or_else(|| panic!("no reason: {status:?}"))
}

/// Polls until the condition holds.
pub(crate) async fn eventually(what: &str, so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < WAIT_MAX, "still waiting for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_MAX, work)
        .await
        .expect("an answer in time")
}

/// A client whose callers wait half a second, and whose refreshes may take a minute.
pub(crate) fn impatient(provider: &ScriptedProvider) -> RelyingParty {
    let mut settings = provider_settings(provider.issuer());
    settings.http_timeout = Duration::from_millis(500);
    RelyingParty::new(settings).unwrap()
}
