//! Builds the edge from its settings, runs its listeners, and drains them at the end.
//!
//! Invariants
//! - Nothing here waits for the provider or the session service, so the edge starts while they are down.
//! - Readiness waits for the first answer of the session service. A later outage does not revoke it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use chassis::audit::{self, Origin, RepeatedRecords};
use chassis::clock::Clock;
use chassis::files::{self, POLL_INTERVAL};
use chassis::memory::{self, Memory};
use chassis::readiness::{Condition, Weight};
use chassis::runtime::Runtime;
use chassis::secret::{Reloading, Secret, split_list};
use chassis::serve::{self, BindError, Limits, ListenerRole, MemoryShare, PerClientLimit, Stopping};
use chassis::tls::{CertificateMetrics, ServerTls, TlsError, TlsFiles};
use futures_util::future::OptionFuture;
use oidc::BuildError;
use prometheus::Registry;
use session_proto::client::{ClientSettings, InvalidSettings, SessionClient};
use session_proto::v1::{GetSessionRequest, get_session_request};
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;

use crate::app::App;
use crate::gateway::assertion::{Assertions, read_keys};
use crate::gateway::{Proxy, UpstreamDurations, UpstreamTlsError};
use crate::http::observe::{Metrics, X_REQUEST_ID, id_header};
use crate::http::pages::Pages;
use crate::http::protect::load::connections_of_address;
use crate::http::protect::slow_client::SEND_TIMEOUT;
use crate::http::shared::Shared;
use crate::providers::IdentityProviders;
use crate::route_table::RouteTable;
use crate::route_table::file;
use crate::routes;
use crate::sessions::cookies::SessionCookies;
use crate::sessions::device_binding::DeviceBindings;
use crate::sessions::keys::DerivedKeys;
use crate::sessions::metrics::{CacheMetrics, DeviceMetrics};
use crate::sessions::{OpenStreams, SILENCE_MAX, SessionCache, SessionRepository, cache_gauges};
use crate::settings::{EdgeSettings, STREAMS_MAX, secrets_are_usable};
use crate::values::forwarded::TrustedProxies;

/// Pause between two probes of the session service.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Most header bytes of an HTTP/2 request: a few cookies of 4 KiB, and the other headers.
const HEADER_LIST_BYTES: usize = 16 * 1024;

/// Most header bytes of all open requests of an HTTP/2 connection: a hundred, each with a cookie of 4 KiB.
const OPEN_HEADER_BYTES: usize = 512 * 1024;

/// Most unread upload bytes of an HTTP/2 connection: 2.5 MB/s over a round trip of 100 ms.
const WINDOW_BYTES: u32 = 256 * 1024;

/// Bytes of an HTTP/1.1 connection's read buffer, and of its write buffer. A request head has to fit.
const HTTP1_BUFFER_BYTES: usize = 32 * 1024;

/// Bytes of a request in flight besides its headers: its stream, its task, its answer. One request of each
/// connection is not counted, nor is the first piece of its answer.
const REQUEST_BYTES: usize = 20 * 1024;

/// Why the edge cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The listening address.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The listener's certificates.
    #[error("TLS for EDGE_LISTEN cannot be set up")]
    Tls(#[from] TlsError),
    /// The provider's settings.
    #[error("the provider's settings cannot be used")]
    Provider(#[from] BuildError),
    /// The session service's addresses or certificates.
    #[error("the session service's settings cannot be used")]
    SessionService(#[from] InvalidSettings),
    /// A certificate for the session service.
    #[error("a certificate for the session service cannot be read")]
    Certificates(#[source] std::io::Error),
    /// TLS towards upstreams.
    #[error(transparent)]
    Upstreams(#[from] UpstreamTlsError),
    /// The metrics.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}

/// Runs the edge until shutdown is requested.
///
/// # Errors
/// The reason why the edge cannot start.
pub async fn run(settings: EdgeSettings, runtime: Runtime) -> Result<(), StartError> {
    let certificates = CertificateMetrics::new(&runtime.metrics)?;
    let tls = match &settings.tls {
        Some((certificate, key)) => {
            let files = TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_ca: None,
            };
            let tls = ServerTls::load(&files)?.measured(&certificates);
            tls.follow(POLL_INTERVAL, files);
            Some(tls)
        }
        None => None,
    };
    let (listen, ext_authz_listen) = (settings.listen, settings.ext_authz_listen);
    let app = build(
        settings,
        Arc::clone(&runtime.clock),
        &runtime.metrics,
        &certificates,
    )?;
    let reached = runtime.readiness.condition("session_service", Weight::Once);
    let client = app.0.sign_in.sessions.client.clone();
    tokio::spawn(probe(client, reached, runtime.shutdown.clone()));
    let memory = memory::available();
    let memory_bytes = memory.as_ref().map(|memory| memory.bytes);
    let capacity = runtime.readiness.condition("connections", Weight::Required);
    let limits = limits(&app, capacity, memory_bytes);
    log_limits(app.settings(), &limits, memory.as_ref());
    if app.settings().routes.is_open_to_all_accounts() {
        tracing::info!(
            "a guarded route accepts every account of the provider: [allow] in the route table names fewer"
        );
    }
    let listener = serve::bind(listen, "EDGE_LISTEN").await?;
    serve::give_up_stalled(&listener, SEND_TIMEOUT);
    tracing::info!(address = %listen, base_url = %app.settings().base_url, "listening");
    let stopping = Stopping {
        requested: runtime.shutdown.clone(),
        ..app.stopping().clone()
    };
    let ext_authz = match ext_authz_listen {
        Some(address) => {
            let listener = serve::bind(address, "EDGE_EXT_AUTHZ_LISTEN").await?;
            let app = app.clone();
            let routes = move || routes::ext_authz(app.for_worker());
            let (workers, stop) = (runtime.workers.clone(), Stopping::on(runtime.shutdown.clone()));
            let limits = Limits::of_secondary_listener(ListenerRole::Side, memory_bytes);
            Some(serve::serve_each(
                workers,
                listener,
                routes,
                tls.clone(),
                limits,
                stop,
            ))
        }
        None => None,
    };
    let router = move || routes::router(app.for_worker());
    let serving = serve::serve_each(runtime.workers, listener, router, tls, limits, stopping);
    tokio::join!(serving, OptionFuture::from(ext_authz));
    Ok(())
}

/// The limits of the listener for browsers.
fn limits(app: &App, capacity: Condition, memory: Option<u64>) -> Limits {
    let share = MemoryShare::of(ListenerRole::Main, STREAMS_MAX, memory);
    let trusted = app.0.layer.shared.trusted_proxies.clone();
    Limits {
        connections: share.connections,
        per_client: Some(PerClientLimit {
            connections: connections_of_address(share.connections),
            is_proxy: Arc::new(move |address| trusted.trusts(address)),
        }),
        streams: STREAMS_MAX,
        header_list_bytes: HEADER_LIST_BYTES,
        open_header_bytes: OPEN_HEADER_BYTES,
        http1_buffer_bytes: HTTP1_BUFFER_BYTES,
        window_bytes: Some(WINDOW_BYTES),
        keeps_http2: false,
        send_timeout: Some(SEND_TIMEOUT),
        waiting_bytes: Some(share.waiting_bytes),
        request_bytes: REQUEST_BYTES,
        refusal: serve::unavailable,
        ends_over_share: true,
        capacity: Some(capacity),
        hits: Some(app.0.layer.shared.metrics.limits.clone()),
    }
}

/// Logs the limits of all listeners, and the memory from which they derive.
fn log_limits(settings: &EdgeSettings, browsers: &Limits, memory: Option<&Memory>) {
    let bytes = memory.map(|memory| memory.bytes);
    tracing::info!(
        memory_bytes = bytes,
        memory_from = memory.map(|memory| tracing::field::display(memory.source.display())),
        connections = browsers.connections,
        requests = settings.max_concurrent_requests,
        waiting_bytes = browsers.waiting_bytes,
        ext_authz_connections = Limits::of_secondary_listener(ListenerRole::Side, bytes).connections,
        admin_connections = Limits::of_secondary_listener(ListenerRole::Admin, bytes).connections,
        "connections at once"
    );
}

/// Builds the edge, and follows changes of its secrets and credentials files. Needs a tokio runtime.
///
/// # Errors
/// The reason why the edge cannot start.
pub fn build(
    mut settings: EdgeSettings,
    clock: Arc<dyn Clock>,
    registry: &Registry,
    certificates: &CertificateMetrics,
) -> Result<App, StartError> {
    let keys = DerivedKeys::new(&settings.secrets).with_clock(Arc::clone(&clock));
    if let Some(file) = &settings.secrets_file {
        follow_secrets(&keys, file.clone());
    }
    let routes = Reloading::new(settings.routes.clone());
    if let Some(path) = &settings.routes_file {
        let around = settings.around_routes.clone();
        let parse = move |text: &str| file::parse(text, &around);
        let (routes, files) = (routes.clone(), RouteTable::address_files);
        let following = routes.follow_all("EDGE_ROUTES", path.clone(), files, parse);
        tokio::spawn(following);
    }
    let pages = Pages::new(settings.look.clone()).embedded_in(&settings.frame_ancestors);
    let metrics = Metrics::new(registry)?;
    let session_client = session_client(&settings, certificates)?;
    let session_cache = SessionCache::start(session_client.clone(), settings.session_cache);
    cache_gauges::register(registry, &session_cache)?;
    provider_settings::measure(&mut settings.providers, registry, certificates)?;
    let providers = IdentityProviders::new(&settings.providers, |provider| settings.callback_path(provider))?;
    for (provider, configured) in providers.all.iter().zip(&settings.providers.all) {
        provider_settings::follow(&provider.relying_party, &configured.credential_files);
    }
    let sites = settings.sites();
    let cookies = SessionCookies::new(settings.cookie.clone(), keys.clone()).on(sites.clone());
    let device_metrics = DeviceMetrics::new(registry)?;
    let bindings = settings
        .device_bound
        .map(|bound| DeviceBindings::new(keys.clone(), &cookies, bound, device_metrics));
    let records = RepeatedRecords::start(Arc::clone(&clock));
    let sessions = SessionRepository {
        streams: OpenStreams::start(session_client.clone(), Arc::clone(&clock), &session_cache),
        client: session_client,
        cookies: cookies.clone(),
        bindings: bindings.clone(),
        rotation: settings.cookie_rotation,
        clock: Arc::clone(&clock),
        cache: session_cache,
        lookups: CacheMetrics::new(registry)?,
        records: Arc::clone(&records),
    };
    let trusted_proxies = TrustedProxies::new(settings.trusted_proxies.clone());
    let shared = Shared {
        keys,
        cookies,
        sessions,
        providers: Arc::new(providers),
        sites,
        trusted_proxies,
        clock,
        metrics,
        pages,
    };
    let proxy = Proxy::new(&settings.upstreams, UpstreamDurations::new(registry)?)?;
    let assertions = assertions(&settings);
    let app = App::new(settings, shared, bindings, records, routes, proxy, assertions);
    app.measure_streams(registry)?;
    Ok(app)
}

fn assertions(settings: &EdgeSettings) -> Option<Assertions> {
    let given = settings.assertions.as_ref()?;
    let keys = Reloading::new(Arc::clone(&given.keys));
    keys.follow(
        POLL_INTERVAL,
        "EDGE_UPSTREAM_JWT_KEY_FILE",
        &given.file,
        read_keys,
    );
    let issuer = settings.base_url.as_str().trim_end_matches('/');
    Some(Assertions::new(keys, issuer))
}

/// The file of secrets holds no usable secrets.
#[derive(Debug, thiserror::Error)]
#[error("the file holds no usable secrets")]
struct UnusableSecrets;

fn follow_secrets(keys: &DerivedKeys, path: PathBuf) {
    let keys = keys.clone();
    let _watch = files::watch(POLL_INTERVAL, vec![path.clone()], move |contents| {
        let content = contents.first().map(Vec::as_slice).unwrap_or_default();
        let secrets: Vec<Secret<String>> = std::str::from_utf8(content).map(split_list).unwrap_or_default();
        if secrets_are_usable(&secrets) {
            keys.replace(&secrets);
            audit::reloaded("EDGE_SECRET", Some(&path), Ok(()));
        } else {
            audit::reloaded("EDGE_SECRET", Some(&path), Err(&UnusableSecrets));
        }
    });
}

fn session_client(
    settings: &EdgeSettings,
    certificates: &CertificateMetrics,
) -> Result<SessionClient, StartError> {
    let path = settings.session_service.ca.clone();
    let own = settings.session_service.identity.clone().map(|(own, _key)| own);
    let shown = certificates.of("session_service", "");
    shown.loaded(own.as_deref());
    let client = ClientSettings {
        on_renewal: Some(Arc::new(move |outcome| {
            if outcome.is_ok() {
                shown.loaded(own.as_deref());
            }
            audit::reloaded("EDGE_SESSION_SVC_CA_FILE", path.as_deref(), outcome);
        })),
        annotate: Some(Arc::new(annotate)),
        watch_silence: SILENCE_MAX,
        ..settings
            .session_service
            .client()
            .map_err(StartError::Certificates)?
    };
    Ok(SessionClient::new(client)?)
}

/// Sends the request's ID and the trace context to the session service.
fn annotate(metadata: &mut MetadataMap) {
    let headers: &mut HeaderMap = metadata.as_mut();
    if let Some(origin) = Origin::current() {
        let mut id = id_header(origin.request_id);
        // Each ID is unique: in the connection's header table it would only evict values that repeat.
        id.set_sensitive(true);
        headers.insert(X_REQUEST_ID, id);
    }
    headers.extend(chassis::propagation::outgoing());
}

/// Reports to readiness whether the session service answers. Asks for a session that cannot exist.
async fn probe(client: SessionClient, reached: Condition, shutdown: CancellationToken) {
    let no_handle = "0".repeat(32);
    loop {
        let by = Some(get_session_request::By::Handle(no_handle.clone()));
        match client.get_session(GetSessionRequest { by }).await {
            Err(error) if error.is_unavailable() => reached.unmet("the session service does not answer"),
            // Any other answer, even an error, is an answer.
            Ok(_) | Err(_) => reached.mark_met(),
        }
        tokio::select! {
            () = tokio::time::sleep(PROBE_INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
