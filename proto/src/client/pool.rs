//! The replicas of the session service: found by name, taking turns, left out for a moment when they cannot be reached.
//!
//! tonic's own balancer keeps endpoints that are gone and never resolves a name twice, so the choice is made here, over
//! plain lazy channels, one for each address.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Uri};
use tonic::{Request, Status};

use super::settings::{Annotate, ClientSettings, ClientTls, InvalidSettings};

/// After a failure names are resolved sooner than usual, but not more often than this.
const RESOLVE_PAUSE: Duration = Duration::from_millis(250);

/// A replica on the same network answers a connection in a millisecond; a second means it is gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an address that failed is left out while others are there.
const LEFT_OUT: Duration = Duration::from_secs(1);

/// Ping an idle connection no more often than gRPC servers tolerate by default.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);

/// A ping unanswered for so long means the connection is dead.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// One address of the service.
#[derive(Debug)]
pub(super) struct Peer {
    channel: Channel,
    epoch: Instant,
    resolve_soon: Arc<Notify>,
    /// Milliseconds after `epoch` until which the peer is left out.
    left_out_until_ms: AtomicU64,
}

impl Peer {
    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(super) fn failed(&self) {
        self.left_out_until_ms
            .store(self.elapsed_ms() + ms(LEFT_OUT), Ordering::Relaxed);
        self.resolve_soon.notify_one();
    }

    fn is_left_out(&self) -> bool {
        let until = self.left_out_until_ms.load(Ordering::Relaxed);
        until != 0 && self.elapsed_ms() < until
    }

    fn elapsed_ms(&self) -> u64 {
        ms(self.epoch.elapsed())
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A name to resolve and what every endpoint behind it shares.
#[derive(Debug)]
struct Target {
    host: String,
    port: u16,
    origin: Uri,
    tls: Option<ClientTlsConfig>,
}

type Peers = HashMap<(usize, SocketAddr), Arc<Peer>>;

/// All replicas.
pub(super) struct Pool {
    targets: Vec<Target>,
    peers: ArcSwap<(Vec<Arc<Peer>>, Peers)>,
    turn: AtomicUsize,
    resolving: Mutex<()>,
    resolver_runs: AtomicBool,
    resolve_soon: Arc<Notify>,
    resolve_interval: Duration,
    annotate: Option<Annotate>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("targets", &self.targets.len())
            .field("peers", &self.peers.load().0.len())
            .finish()
    }
}

impl Pool {
    pub(super) fn new(settings: ClientSettings) -> Result<Self, InvalidSettings> {
        if settings.addresses.is_empty() {
            return Err(InvalidSettings::NoAddress);
        }
        let tls = settings.tls.as_ref().map(tls_config);
        let targets = settings
            .addresses
            .iter()
            .map(|address| target(address, tls.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        for target in &targets {
            // Certificates that cannot be used are told now, not at the first call.
            endpoint(target, SocketAddr::from(([127, 0, 0, 1], target.port)))
                .map_err(InvalidSettings::Tls)?;
        }
        Ok(Self {
            targets,
            peers: ArcSwap::default(),
            turn: AtomicUsize::new(0),
            resolving: Mutex::new(()),
            resolver_runs: AtomicBool::new(false),
            resolve_soon: Arc::default(),
            resolve_interval: settings.resolve_interval,
            annotate: settings.annotate,
        })
    }

    /// The next replica in turn that is not left out; if all are, the next in turn.
    pub(super) async fn pick(self: &Arc<Self>) -> Result<Arc<Peer>, Status> {
        if self.peers.load().0.is_empty() {
            self.resolve_first().await;
        }
        let known = self.peers.load();
        let peers = &known.0;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..peers.len()).filter_map(|step| peers.get((turn + step) % peers.len()));
        in_turn
            .clone()
            .find(|peer| !peer.is_left_out())
            .or_else(|| in_turn.clone().next())
            .cloned()
            .ok_or_else(|| Status::unavailable("no address of the session service is known"))
    }

    /// A request with the time left as its gRPC deadline.
    pub(super) fn request<Q>(&self, message: Q, until: Instant) -> Request<Q> {
        let mut request = Request::new(message);
        request.set_timeout(until.saturating_duration_since(Instant::now()));
        self.annotate(request.metadata_mut());
        request
    }

    pub(super) fn annotate(&self, metadata: &mut MetadataMap) {
        if let Some(annotate) = &self.annotate {
            annotate(metadata);
        }
    }

    /// Resolves while nothing is known: one caller does, the others wait for it. Starts the resolver the first time.
    async fn resolve_first(self: &Arc<Self>) {
        let _alone = self.resolving.lock().await;
        if self.peers.load().0.is_empty() {
            self.resolve().await;
        }
        if !self.resolver_runs.swap(true, Ordering::Relaxed) {
            tokio::spawn(keep_resolving(
                Arc::downgrade(self),
                self.resolve_soon.clone(),
                self.resolve_interval,
            ));
        }
    }

    /// Resolves all names now and keeps what is still there, connections included. A name that cannot be resolved
    /// keeps its last addresses.
    async fn resolve(&self) {
        let before = self.peers.load_full();
        let mut after = Peers::new();
        for (index, target) in self.targets.iter().enumerate() {
            match tokio::net::lookup_host((target.host.as_str(), target.port)).await {
                Ok(addresses) => {
                    for address in addresses {
                        let key = (index, address);
                        let peer = before
                            .1
                            .get(&key)
                            .cloned()
                            .or_else(|| connect(target, address, &self.resolve_soon));
                        after.extend(peer.map(|peer| (key, peer)));
                    }
                }
                Err(error) => {
                    tracing::warn!(host = target.host, %error, "the session service's name cannot be resolved");
                    after.extend(
                        before
                            .1
                            .iter()
                            .filter(|((of, _), _)| *of == index)
                            .map(|(k, p)| (*k, p.clone())),
                    );
                }
            }
        }
        let mut order: Vec<_> = after.iter().collect();
        order.sort_by_key(|(key, _)| **key);
        let order = order.into_iter().map(|(_, peer)| peer.clone()).collect();
        self.peers.store(Arc::new((order, after)));
    }
}

/// Resolves every `interval`, and soon after a failure, until the pool is dropped.
async fn keep_resolving(pool: Weak<Pool>, soon: Arc<Notify>, interval: Duration) {
    loop {
        tokio::time::sleep(RESOLVE_PAUSE.min(interval)).await;
        // Whether it was nudged or the interval passed makes no difference.
        let _ = tokio::time::timeout(interval.saturating_sub(RESOLVE_PAUSE), soon.notified()).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.resolve().await;
    }
}

fn target(address: &str, tls: Option<&ClientTlsConfig>) -> Result<Target, InvalidSettings> {
    let invalid = || InvalidSettings::Address(address.to_owned());
    let origin: Uri = address.parse().map_err(|_| invalid())?;
    let secure = match origin.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(invalid()),
    };
    if origin.path() != "/"
        || origin.query().is_some()
        || origin.authority().is_some_and(|a| a.as_str().contains('@'))
    {
        return Err(invalid());
    }
    let host = origin
        .host()
        .filter(|host| !host.is_empty())
        .ok_or_else(invalid)?;
    // The brackets of an IPv6 literal belong to the URL, not to the name.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = origin.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let tls = secure.then(|| {
        tls.cloned()
            .unwrap_or_else(ClientTlsConfig::new)
            .domain_name(host.clone())
    });
    Ok(Target {
        host,
        port,
        origin,
        tls,
    })
}

fn tls_config(tls: &ClientTls) -> ClientTlsConfig {
    let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca_pem));
    match &tls.identity_pem {
        Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
        None => config,
    }
}

fn endpoint(target: &Target, address: SocketAddr) -> Result<Endpoint, tonic::transport::Error> {
    let scheme = if target.tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?
        .origin(target.origin.clone())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    match &target.tls {
        Some(tls) => endpoint.tls_config(tls.clone()),
        None => Ok(endpoint),
    }
}

fn connect(target: &Target, address: SocketAddr, resolve_soon: &Arc<Notify>) -> Option<Arc<Peer>> {
    match endpoint(target, address) {
        Ok(endpoint) => {
            let channel = endpoint.connect_lazy();
            Some(Arc::new(Peer {
                channel,
                epoch: Instant::now(),
                resolve_soon: resolve_soon.clone(),
                left_out_until_ms: AtomicU64::new(0),
            }))
        }
        Err(error) => {
            tracing::warn!(%address, %error, "an address of the session service cannot be used");
            None
        }
    }
}
