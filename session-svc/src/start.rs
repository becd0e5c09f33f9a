//! Starts the service from its settings, serves, and drains.
//!
//! Invariant: the start waits neither for the provider nor for a shared store, so it succeeds while they are down. It
//! waits for Vault if a key is wrapped: without its keys the service can do nothing, so no port opens before.

use std::sync::Arc;
use std::time::Duration;

use chassis::files::POLL_INTERVAL;
use chassis::memory;
use chassis::metrics::LimitHits;
use chassis::random::NoRandomness;
use chassis::readiness::Weight;
use chassis::runtime::Runtime;
use chassis::secret::Reloading;
use chassis::serve::{self, BindError, ListenerRole, MemoryShare, Stopping};
use chassis::tls::{CertificateMetrics, ServerTls, TlsError};
use oidc::{BuildError, RelyingParty};
use session_proto::client::ConnectInMemory;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::callers::Callers;
use crate::grpc::{self, CallContext, Health};
use crate::receiver::{ReceiverError, SignalReceiver, TransmittersFile};
use crate::refresh::{Measures, RefreshProviders, Refresher};
use crate::session::Lifetime;
use crate::session_store::{SessionCounts, SessionStore};
use crate::sessions::{SessionLimits, Sessions};
use crate::settings::Settings;
use crate::settings::api_servers::ApiServersFile;
use crate::store::{self, KeyValueStore, MeasuredStore, OpenError};
use crate::store_condition::StoreCondition;
use crate::transit::{KeyLoader, KeysError};
use crate::transmitter::{self, Outbox, Receivers};
use crate::vault::{KeyRing, UnknownKeys, Vault};

/// How long writes and refreshes may continue after the stop signal, even without their callers. It is below
/// the process's own limit, which is below the 30 s that Kubernetes grants by default.
const FINISH_TIMEOUT: Duration = Duration::from_secs(26);

/// Most bytes of answers that wait for callers that do not read, however large the memory is.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of all headers of a call together: metadata of callers is short.
const HEADER_BYTES: usize = 16 * 1024;

/// Unread message bytes that a connection may have sent: the largest message.
const WINDOW_BYTES: u32 = 256 * 1024;

/// Calls per connection in the memory estimate. A connection may carry more: callers are known, and each
/// worker of each edge has a connection with few calls.
const CALLS_RECKONED: u32 = 100;

/// Bytes of a call's stream and task. Its metadata, and the bytes that its method counts, are not included.
const REQUEST_BYTES: usize = 4 * 1024;

/// The service drops an answer whose caller reads nothing for this long; proxies grant the same.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The listening address.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The listeners' certificates.
    #[error("TLS for SESSION_LISTEN cannot be set up")]
    Tls(#[from] TlsError),
    /// The store.
    #[error("the store of SESSION_STORE cannot be opened")]
    Store(#[from] OpenError),
    /// The keys.
    #[error("SESSION_ENCRYPTION_KEY cannot be used")]
    Keys(#[from] KeysError),
    /// Randomness for a key is missing.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// The provider's settings.
    #[error("the provider's settings cannot be used")]
    Provider(#[from] BuildError),
    /// The receiver of security events.
    #[error("the receiver of security events cannot start")]
    Receiver(#[from] ReceiverError),
    /// The metrics.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    /// A broken build.
    #[error("the built-in descriptors cannot be served")]
    Descriptors(#[from] tonic_reflection::server::Error),
}

/// The parts of a service.
#[derive(Clone)]
pub struct ServiceParts<P = RefreshProviders> {
    /// Stores the sessions; its clock is the service's.
    pub store: Arc<dyn KeyValueStore>,
    /// Seals the sessions.
    pub keys: Reloading<KeyRing>,
    /// Refreshes and revokes their tokens.
    pub provider: P,
    /// The durations of sessions.
    pub lifetime: Lifetime,
    /// Limits of sessions.
    pub limits: SessionLimits,
    /// Trusted transmitters of security events, and what their events do.
    pub transmitters: Option<TransmittersFile>,
    /// Receivers of the events of ended sessions.
    pub receivers: Option<Receivers>,
}

/// Which clients may connect, and what they may call.
pub struct AccessPolicy {
    /// TLS on the listener.
    pub tls: Option<ServerTls>,
    /// Which caller may call what.
    pub callers: Callers,
}

impl AccessPolicy {
    /// Every client that can connect, without TLS.
    pub fn anyone() -> Self {
        Self {
            tls: None,
            callers: Callers::anyone(),
        }
    }
}

/// How callers reach the service.
pub enum Entrance {
    /// Over the network.
    Tcp(TcpListener),
    /// From within this process: receives what callers connect with.
    InMemory(oneshot::Sender<ConnectInMemory>),
}

impl From<TcpListener> for Entrance {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

/// Runs the service until the runtime shuts down.
///
/// # Errors
/// The reason why it cannot start.
pub async fn run(settings: Settings, runtime: Runtime) -> Result<(), StartError> {
    let Some(keys) = keys(&settings, &runtime).await? else {
        return Ok(());
    };
    let listener = serve::bind(settings.listen, "SESSION_LISTEN").await?;
    run_at(listener.into(), settings, keys, runtime).await
}

/// Runs the service for callers within this process, until the runtime shuts down. Sends what they connect with.
///
/// # Errors
/// The reason why it cannot start.
pub async fn run_in_memory(
    settings: Settings,
    runtime: Runtime,
    connect: oneshot::Sender<ConnectInMemory>,
) -> Result<(), StartError> {
    match keys(&settings, &runtime).await? {
        Some(keys) => run_at(Entrance::InMemory(connect), settings, keys, runtime).await,
        None => Ok(()),
    }
}

async fn run_at(
    entrance: Entrance,
    mut settings: Settings,
    keys: Reloading<KeyRing>,
    runtime: Runtime,
) -> Result<(), StartError> {
    let certificates = CertificateMetrics::new(&runtime.metrics)?;
    let tls = match settings.tls.clone() {
        Some(files) => {
            let tls = ServerTls::load(&files)?.measured(&certificates);
            tls.follow(POLL_INTERVAL, files);
            Some(tls)
        }
        None => None,
    };
    provider_settings::measure(&mut settings.providers, &runtime.metrics, &certificates)?;
    let mut parties = Vec::new();
    for provider in &settings.providers.all {
        let party = RelyingParty::new(provider.settings.clone())?;
        provider_settings::follow(&party, &provider.credential_files);
        parties.push(party);
    }
    let api_servers = settings.api_servers.map(ApiServersFile::follow);
    let provider = RefreshProviders::of_parties(settings.providers.listed, parties)
        .with_api_servers(api_servers.unwrap_or_default());
    let store = store::open_from(
        &settings.store,
        settings.store_file.as_deref(),
        Arc::clone(&runtime.clock),
        Some(certificates.of("store", "")),
    )
    .await?;
    let parts = ServiceParts {
        store,
        keys,
        provider,
        lifetime: settings.lifetime,
        limits: settings.limits,
        transmitters: settings.transmitters,
        receivers: settings.receivers,
    };
    let callers = match settings.callers {
        Some((path, policy)) => {
            let callers = Callers::listed(policy);
            callers.follow(POLL_INTERVAL, &path);
            callers
        }
        None => Callers::anyone(),
    };
    let access = AccessPolicy { tls, callers };
    serve(access, parts, entrance, runtime).await
}

/// Serves the clients that the policy admits, and reports endings to receivers, until the runtime shuts down.
///
/// # Errors
/// The reason why it cannot start.
pub async fn serve<P: Into<RefreshProviders>>(
    access: AccessPolicy,
    parts: ServiceParts<P>,
    entrance: impl Into<Entrance>,
    runtime: Runtime,
) -> Result<(), StartError> {
    let entrance = entrance.into();
    let store: Arc<dyn KeyValueStore> = Arc::new(MeasuredStore::new(parts.store, &runtime.metrics)?);
    let condition = StoreCondition::new(&runtime)?;
    let vault = Vault {
        clock: Arc::clone(&runtime.clock),
        unknown_keys: Some(UnknownKeys::new(&runtime.metrics)?),
        keys: parts.keys,
    };
    let receiver = parts.transmitters;
    let mut session_store = SessionStore::new(Arc::clone(&store), Arc::new(vault), parts.lifetime);
    session_store.counts = Some(SessionCounts::new(&runtime.metrics, &parts.lifetime)?);
    session_store.finds_by_email = receiver.as_ref().is_some_and(TransmittersFile::has_email);
    session_store = session_store.searchable(parts.limits.operator_search);
    let receiver = receiver
        .map(|file| SignalReceiver::new(file, &runtime.metrics))
        .transpose()?;
    let outbox = match parts.receivers {
        Some(receivers) => Some(Arc::new(Outbox::new(
            receivers,
            session_store.clone(),
            &runtime.metrics,
        )?)),
        None => None,
    };
    let mut refresher = Refresher::new(
        session_store.clone(),
        parts.provider,
        parts.limits.refresh_lease,
        parts.limits.max_bytes,
        Measures::new(&runtime.metrics)?,
    );
    refresher.revalidates = parts.limits.revalidate_ms > 0;
    refresher.signals = outbox.clone();
    let sessions = Sessions::new(session_store, Arc::new(refresher.clone()), parts.limits)
        .with_demands(receiver.is_some());
    let limits = listener_limits(LimitHits::new(&runtime.metrics, [])?);
    let calls = CallContext::new(access.callers, &runtime.metrics, Arc::clone(&runtime.clock))?;
    let stopping = Stopping::on(runtime.shutdown.clone());
    // Ends the clients' streams only after the listener has closed: else these clients would reconnect to it.
    let closed = stopping.closed.clone();
    let health = Health::new(runtime.readiness.subscribe());
    let router = grpc::routes(sessions, receiver, calls.clone(), &health, closed)?;
    let delivering = outbox
        .map(|outbox| transmitter::deliver(&outbox, &runtime.shutdown))
        .transpose()?;
    // Dropped at the end, which stops the remaining tasks.
    let mut background = JoinSet::new();
    background.spawn(refresher.clone().revoke_noted(runtime.shutdown.clone()));
    background.spawn(condition.follow(store, runtime.shutdown.clone()));
    log_start(&entrance, parts.limits);
    let stop_requested = async {
        runtime.shutdown.cancelled().await;
        Instant::now()
    };
    let serving = async {
        match entrance {
            Entrance::Tcp(listener) => {
                serve::serve_each(runtime.workers, listener, router, access.tls, limits, stopping).await;
            }
            Entrance::InMemory(connect) => {
                // Without a receiver the process is about to end.
                let _ = connect.send(ConnectInMemory::new(move || serve::connect_in_memory(router())));
                runtime.shutdown.cancelled().await;
            }
        }
    };
    let ((), since) = tokio::join!(serving, stop_requested);
    finish(calls, refresher, delivering, since).await;
    Ok(())
}

fn log_start(entrance: &Entrance, limits: SessionLimits) {
    if let Entrance::Tcp(listener) = entrance
        && let Ok(address) = listener.local_addr()
    {
        tracing::info!(%address, "answering gRPC");
    }
    if limits.revalidate_ms > 0 {
        tracing::info!(
            revalidate_secs = limits.revalidate_ms / 1_000,
            "sessions in use are revalidated at the provider, except those without a refresh token"
        );
    }
}

/// Waits for work after the last connection has closed, until [`FINISH_TIMEOUT`] after the stop signal.
async fn finish(calls: CallContext, refresher: Refresher, delivering: Option<TaskTracker>, since: Instant) {
    let left = || FINISH_TIMEOUT.saturating_sub(since.elapsed());
    // Calls first: the refresher revokes the tokens of sessions that these calls end.
    calls.drained(left()).await;
    refresher.finish(left()).await;
    if let Some(delivering) = delivering
        && timeout(left(), delivering.wait()).await.is_err()
    {
        tracing::warn!("receivers of signals did not answer in time: another replica sends to them");
    }
}

/// The listener's limits, based on the available memory.
fn listener_limits(hits: LimitHits) -> serve::Limits {
    let memory = memory::available();
    let bytes = memory.as_ref().map(|memory| memory.bytes);
    let share = MemoryShare::of(ListenerRole::Main, CALLS_RECKONED, bytes);
    let waiting_bytes = WAITING_BYTES_MAX.min(share.waiting_bytes);
    tracing::info!(
        memory_bytes = bytes,
        memory_from = memory.map(|memory| tracing::field::display(memory.source.display().to_string())),
        connections = share.connections,
        waiting_bytes,
        admin_connections = serve::Limits::of_secondary_listener(ListenerRole::Admin, bytes).connections,
        "connections at once"
    );
    serve::Limits {
        connections: share.connections,
        header_list_bytes: HEADER_BYTES,
        http1_buffer_bytes: HEADER_BYTES,
        window_bytes: Some(WINDOW_BYTES),
        send_timeout: Some(SEND_TIMEOUT),
        waiting_bytes: Some(waiting_bytes),
        request_bytes: REQUEST_BYTES,
        refusal: grpc::overloaded,
        hits: Some(hits),
        ..serve::Limits::default()
    }
}

/// The keys, which follow their file. Waits while Vault is away; `None` if the service is stopped meanwhile.
async fn keys(settings: &Settings, runtime: &Runtime) -> Result<Option<Reloading<KeyRing>>, StartError> {
    if settings.keys.is_empty() {
        return Ok(Some(Reloading::new(KeyRing::random()?)));
    }
    let condition = settings.transit.is_some();
    let condition = condition.then(|| runtime.readiness.condition("vault", Weight::Once));
    let mut loader = KeyLoader::new(settings.transit.clone(), condition);
    let keys = tokio::select! {
        keys = loader.wait_for(&settings.keys) => Reloading::new(keys?),
        () = runtime.shutdown.cancelled() => return Ok(None),
    };
    if let Some(path) = &settings.keys_file {
        loader.follow(keys.clone(), POLL_INTERVAL, path, Arc::clone(&runtime.clock));
    }
    Ok(Some(keys))
}
