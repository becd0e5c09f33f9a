//! One address of the service, and the name that resolved to it.

use std::fmt::{Display, Formatter};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tonic::Status;
use tonic::transport::{ClientTlsConfig, Endpoint, Uri};

use super::connection::ReplicaConnection;
use super::pool::Pool;
use super::resolve::Resolve;
use super::settings::{ConnectInMemory, InvalidSettings};
use super::stream_connections::{StreamConnections, StreamPermit};
use super::tls::ClientTls;

/// A replica on the same network accepts a connection in a millisecond; after a second it is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a failed address is ejected, that is skipped while others are available. Each failure doubles it.
const EJECTION: Duration = Duration::from_secs(1);

/// Most doublings: at most eight seconds, so that a replica that returns to its address soon gets calls.
const DOUBLINGS_MAX: u32 = 3;

/// Longest wait for a resolution. After that, the name keeps its last addresses.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of pings on a silent connection with calls, to distinguish a slow replica from one that is cut
/// off. An idle connection is not pinged.
const KEEPALIVE_INTERVAL: Duration = Duration::from_millis(500);

/// A connection that does not answer a ping for this long is dead, and its calls fail. With the interval above
/// that takes two seconds, so two attempts fit into a deadline of five.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_millis(1500);

/// Identifies one address of the service while its name resolves to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId {
    origin: Arc<str>,
    address: SocketAddr,
}

impl EndpointId {
    /// The `http` or `https` URL of the settings whose name resolved to this address.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Display for EndpointId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.origin, self.address)
    }
}

/// A name to resolve, and the settings that its addresses share.
#[derive(Debug)]
pub(super) struct ServiceTarget {
    text: Arc<str>,
    pub(super) host: String,
    pub(super) port: u16,
    origin: Uri,
    secure: bool,
}

impl ServiceTarget {
    pub(super) fn parse(address: &str) -> Result<Self, InvalidSettings> {
        let invalid = || InvalidSettings::Address(address.to_owned());
        let origin: Uri = address.parse().map_err(|_| invalid())?;
        let secure = match origin.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(invalid()),
        };
        let has_user = origin.authority().is_some_and(|a| a.as_str().contains('@'));
        if origin.path() != "/" || origin.query().is_some() || has_user {
            return Err(invalid());
        }
        let host = origin
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(invalid)?;
        // The brackets of an IPv6 literal belong to the URL, not to the name.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = origin.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Ok(Self {
            text: address.into(),
            host,
            port,
            origin,
            secure,
        })
    }

    /// Rejects unusable certificates now, not at the first call.
    pub(super) fn check(&self, tls: Option<&ClientTls>) -> Result<(), InvalidSettings> {
        if self.secure && tls.is_none() {
            return Err(InvalidSettings::NobodyToTrust(self.text.to_string()));
        }
        let somewhere = SocketAddr::from(([127, 0, 0, 1], self.port));
        self.endpoint(somewhere, tls)
            .map(drop)
            .map_err(InvalidSettings::Tls)
    }

    pub(super) fn owns(&self, id: &EndpointId) -> bool {
        id.origin == self.text
    }

    pub(super) fn id(&self, address: SocketAddr) -> EndpointId {
        EndpointId {
            origin: Arc::clone(&self.text),
            address,
        }
    }

    pub(super) async fn lookup(&self, resolver: &dyn Resolve) -> io::Result<Vec<SocketAddr>> {
        timeout(RESOLVE_TIMEOUT, resolver.resolve(&self.host, self.port))
            .await
            .unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))
    }

    fn endpoint(
        &self,
        address: SocketAddr,
        tls: Option<&ClientTls>,
    ) -> Result<Endpoint, tonic::transport::Error> {
        let scheme = if self.secure { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?
            .origin(self.origin.clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT);
        if !self.secure {
            return Ok(endpoint);
        }
        let config = tls.map_or_else(ClientTlsConfig::new, ClientTls::config);
        endpoint.tls_config(config.domain_name(self.host.clone()))
    }
}

/// A replica for a call, and the connection to it.
#[derive(Clone)]
pub(super) struct ReplicaChoice {
    pub(super) replica: Arc<ReplicaEndpoint>,
    pub(super) connection: Arc<ReplicaConnection>,
}

/// A connection attempt, shared by all its waiters.
type Attempt = Shared<BoxFuture<'static, Result<Arc<ReplicaConnection>, Status>>>;

/// One address of the service, with its connections.
pub(super) struct ReplicaEndpoint {
    pub(super) id: EndpointId,
    endpoint: Endpoint,
    in_memory: Option<ConnectInMemory>,
    /// The last connection for calls.
    for_calls: ArcSwapOption<ReplicaConnection>,
    for_streams: StreamConnections,
    /// The current connection attempt.
    attempt: Mutex<Option<Attempt>>,
    epoch: Instant,
    resolve_soon: Arc<Notify>,
    /// Milliseconds after `epoch` until which the replica is ejected.
    ejected_until_ms: AtomicU64,
    /// Consecutive failures; concurrent calls that fail together count once.
    failures: AtomicU32,
}

impl ReplicaEndpoint {
    /// Makes an endpoint without connecting. If the address cannot be used, warns and returns `None`.
    pub(super) fn new(
        target: &ServiceTarget,
        address: SocketAddr,
        tls: Option<&ClientTls>,
        pool: &Pool,
    ) -> Option<Arc<Self>> {
        match target.endpoint(address, tls) {
            Ok(endpoint) => Some(Arc::new(Self {
                id: target.id(address),
                endpoint,
                in_memory: pool.settings.in_memory.clone(),
                for_calls: ArcSwapOption::default(),
                for_streams: StreamConnections::default(),
                attempt: Mutex::default(),
                epoch: Instant::now(),
                resolve_soon: Arc::clone(&pool.resolve_soon),
                ejected_until_ms: AtomicU64::new(0),
                failures: AtomicU32::new(0),
            })),
            Err(error) => {
                tracing::warn!(%address, error = &error as &dyn std::error::Error, "an address of the session service cannot be used");
                None
            }
        }
    }

    /// The connection, if it takes calls.
    pub(super) fn connected(&self) -> Option<Arc<ReplicaConnection>> {
        let last = self.for_calls.load_full();
        last.filter(|connection| !connection.state.is_going_away())
    }

    /// Starts to connect, unless an attempt is running. If the last connection ended within a second, ejects the
    /// replica instead.
    pub(super) fn begin_to_connect(self: &Arc<Self>) {
        let last = self.for_calls.load_full();
        if last.is_some_and(|connection| connection.made.elapsed() < EJECTION) {
            self.record_failure();
        } else {
            drop(self.attempt());
        }
    }

    /// This replica with its connection, made now if necessary. Panics outside a tokio runtime.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<ReplicaChoice, Status> {
        let connection = match self.connected() {
            Some(connection) => connection,
            None => self.attempt().await?,
        };
        let replica = Arc::clone(self);
        Ok(ReplicaChoice { replica, connection })
    }

    /// The running attempt to connect, or a new one. It continues even without waiters.
    fn attempt(self: &Arc<Self>) -> Attempt {
        let mut under_way = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(attempt) = &*under_way {
            return attempt.clone();
        }
        let this = Arc::clone(self);
        let attempt = async move {
            let made = this.make_connection().await;
            match &made {
                Ok(connection) => this.for_calls.store(Some(Arc::clone(connection))),
                Err(_) => this.record_failure(),
            }
            *this.attempt.lock().unwrap_or_else(PoisonError::into_inner) = None;
            made
        };
        let attempt = attempt.boxed().shared();
        *under_way = Some(attempt.clone());
        tokio::spawn(attempt.clone());
        attempt
    }

    /// A connection for a stream, and the stream's permit on it.
    pub(super) async fn for_stream(&self) -> Result<(Arc<ReplicaConnection>, StreamPermit), Status> {
        if let Some(free) = self.for_streams.free() {
            return Ok(free);
        }
        let connection = self.make_connection().await?;
        let permit = self.for_streams.add(&connection);
        Ok((connection, permit))
    }

    async fn make_connection(&self) -> Result<Arc<ReplicaConnection>, Status> {
        let made = ReplicaConnection::make(&self.endpoint, self.id.address, self.in_memory.clone()).await;
        made.map(Arc::new)
    }

    /// Records a call that failed or got no answer.
    pub(super) fn record_failure(&self) {
        if !self.is_ejected() {
            let before = self.failures.fetch_add(1, Ordering::Relaxed);
            let pause = EJECTION * 2_u32.pow(before.min(DOUBLINGS_MAX));
            self.ejected_until_ms
                .store(self.elapsed_ms() + ms(pause), Ordering::Relaxed);
        }
        self.resolve_soon.notify_one();
    }

    /// Ejects a replica that is silent while another one answers. It needs a new connection to get calls
    /// again.
    pub(super) fn suspect(&self) {
        if let Some(connection) = self.for_calls.load_full() {
            connection.state.go_away();
        }
        self.record_failure();
    }

    /// Records an answered call.
    pub(super) fn record_success(&self) {
        // Read first: a store would take the cache line from other cores, and most calls change nothing.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.ejected_until_ms.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn is_ejected(&self) -> bool {
        let until = self.ejected_until_ms.load(Ordering::Relaxed);
        until != 0 && self.elapsed_ms() < until
    }

    fn elapsed_ms(&self) -> u64 {
        ms(self.epoch.elapsed())
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
