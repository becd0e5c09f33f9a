//! The real session service in this process: memory store, test clock, real gRPC, stop switch.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use chassis::clock::{ManualClock, SystemClock};
use chassis::runtime::Workers;
use chassis::secret::Reloading;
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::v1::ErrorReason;
use session_svc::grpc::{self, CallContext, Health};
use session_svc::receiver::{SignalReceiver, TransmittersFile};
use session_svc::refresh::{LEASE, Measures, RefreshProviders, Refresher};
use session_svc::session::Lifetime;
use session_svc::session_store::SessionStore;
use session_svc::sessions::{SessionLimits, Sessions};
use session_svc::store::embedded::{DEFAULT_CAPACITY, EmbeddedStore};
use session_svc::vault::{KeyRing, Vault};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// The session service; its data survives a stop.
pub(crate) struct SessionService {
    /// Builds the routes; watches end with the token.
    routes: Box<dyn Fn(CancellationToken) -> Router + Send + Sync>,
    address: std::net::SocketAddr,
    running: Mutex<Option<(CancellationToken, JoinHandle<()>)>>,
    calls: Arc<AtomicUsize>,
    /// Answers operators' calls instead of the service.
    operators: Arc<OnceLock<Router>>,
    /// Whether no caller may call `UpdateSession`.
    keeps_no_updates: Arc<AtomicBool>,
    store: EmbeddedStore,
    keys: Reloading<KeyRing>,
    providers: RefreshProviders,
    heartbeat: Duration,
    /// The transmitters it accepts security events from.
    transmitters: Option<TransmittersFile>,
}

impl Drop for SessionService {
    fn drop(&mut self) {
        if let Some((stop, task)) = self.running.lock().unwrap().take() {
            stop.cancel();
            task.abort();
        }
    }
}

impl SessionService {
    /// Starts a service whose watches send heartbeats at this interval.
    pub(crate) async fn start(
        providers: impl Into<RefreshProviders>,
        clock: &ManualClock,
        heartbeat: Duration,
        transmitters: Option<TransmittersFile>,
    ) -> Self {
        let store = EmbeddedStore::in_memory(Arc::new(clock.clone()), DEFAULT_CAPACITY).unwrap();
        let keys = Reloading::new(KeyRing::random().unwrap());
        Self::on(store, keys, providers.into(), heartbeat, transmitters).await
    }

    /// Another service on the same store.
    pub(crate) async fn beside(&self) -> Self {
        let (store, keys) = (self.store.clone(), self.keys.clone());
        let transmitters = self.transmitters.clone();
        Self::on(store, keys, self.providers.clone(), self.heartbeat, transmitters).await
    }

    /// Seals with another key from now on, and cannot read earlier texts.
    pub(crate) fn forget_keys(&self) {
        self.keys.store(KeyRing::random().unwrap());
    }

    async fn on(
        store: EmbeddedStore,
        keys: Reloading<KeyRing>,
        providers: RefreshProviders,
        heartbeat: Duration,
        transmitters: Option<TransmittersFile>,
    ) -> Self {
        const MAX_BYTES: usize = 65_536;
        let vault = Vault::new(keys.clone());
        let lifetime = Lifetime {
            rolling_ms: 86_400_000,
            absolute_ms: 604_800_000,
            roll_interval_ms: 60_000,
        };
        let session_store = SessionStore::new(Arc::new(store.clone()), Arc::new(vault), lifetime);
        let measures = Measures::new(&prometheus::Registry::new()).unwrap();
        let refresher = Refresher::new(
            session_store.clone(),
            providers.clone(),
            LEASE,
            MAX_BYTES,
            measures,
        );
        let limits = SessionLimits {
            revalidate_ms: 0,
            refresh_lease: LEASE,
            max_bytes: MAX_BYTES,
            max_per_subject: 0,
            operator_search: false,
            watch_heartbeat: heartbeat,
        };
        let sessions =
            Sessions::new(session_store, Arc::new(refresher), limits).with_demands(transmitters.is_some());
        let receiver = transmitters
            .clone()
            .map(|file| SignalReceiver::new(file, &prometheus::Registry::new()).unwrap());
        let measured = CallContext::new(
            session_svc::callers::Callers::anyone(),
            &prometheus::Registry::new(),
            Arc::new(SystemClock),
        )
        .unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let operators = Arc::<OnceLock<Router>>::default();
        let stand_in = Arc::clone(&operators);
        let keeps_no_updates = Arc::new(AtomicBool::new(false));
        let strict = Arc::clone(&keeps_no_updates);
        let health = Health::new(tokio::sync::watch::Sender::new(true).subscribe());
        let routes = move |stop| {
            let counted = Arc::clone(&counted);
            let strict = Arc::clone(&strict);
            let stand_in = Arc::clone(&stand_in);
            let routes = grpc::routes(
                sessions.clone(),
                receiver.clone(),
                measured.clone(),
                &health,
                stop,
            )
            .unwrap();
            routes().layer(from_fn(move |request: Request, next: Next| {
                // An edge reopens its watches whenever they break.
                let path = request.uri().path();
                let is_watch = path.contains("/Watch") || path.ends_with("/FollowSessions");
                counted.fetch_add(usize::from(!is_watch), Ordering::SeqCst);
                let is_update = request.uri().path().ends_with("/UpdateSession");
                let of_operators = path.starts_with("/session.v1.OperatorSessionService/");
                let stand_in = stand_in.get().filter(|_| of_operators).cloned();
                let is_refused = is_update && strict.load(Ordering::SeqCst);
                async move {
                    if let Some(stand_in) = stand_in {
                        return stand_in.oneshot(request).await.unwrap();
                    }
                    if is_refused {
                        let reason = ErrorReason::ErrCallerNotAllowed;
                        return session_proto::error::status(reason, "not allowed", []).into_http();
                    }
                    next.run(request).await
                }
            }))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = Self {
            routes: Box::new(routes),
            address,
            running: Mutex::default(),
            calls,
            operators,
            keeps_no_updates,
            store,
            keys,
            providers,
            heartbeat,
            transmitters,
        };
        service.serve(listener);
        service
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A separate client.
    pub(crate) fn client(&self) -> SessionClient {
        SessionClient::new(ClientSettings::new([self.url()])).unwrap()
    }

    /// Lets no caller call `UpdateSession` from now on.
    pub(crate) fn lets_nobody_update(&self) {
        self.keeps_no_updates.store(true, Ordering::SeqCst);
    }

    /// Lets these routes answer operators' calls from now on.
    pub(crate) fn answer_operators_by(&self, routes: Router) {
        self.operators.set(routes).unwrap();
    }

    /// The number of calls, without watches.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Refuses connections until started again.
    pub(crate) async fn stop(&self) {
        let running = self.running.lock().unwrap().take();
        if let Some((stop, task)) = running {
            stop.cancel();
            task.await.unwrap();
        }
    }

    /// Starts again at the same address, with its data.
    pub(crate) async fn start_again(&self) {
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }

    fn serve(&self, listener: TcpListener) {
        let stop = CancellationToken::new();
        let router = (self.routes)(stop.clone());
        let task = tokio::spawn(chassis::serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            None,
            chassis::serve::Limits::default(),
            chassis::serve::Stopping::on(stop.clone()),
        ));
        *self.running.lock().unwrap() = Some((stop, task));
    }
}
