//! Connections to the servers: made and checked by the pool, held here, and shared by all calls.
//!
//! Invariants
//! - A call uses a clone of a multiplexed handle: no checkout, no extra command, no lock across an await.
//! - Every wait is bounded. A connection that failed is given back to the pool, which checks or replaces it;
//!   while the server is away, one call at a time tries and the others are told at once.
//! - Only reads are repeated, once, and only when their connection broke.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use deadpool_redis::redis::aio::{ConnectionLike, MultiplexedConnection};
use deadpool_redis::redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConfig};
use deadpool_redis::redis::cluster_async::ClusterConnection;
use deadpool_redis::redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    FromRedisValue, IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisFuture, RedisResult,
    ServerErrorKind, TlsCertificates, TlsMode, Value,
};
use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts};
use tokio::sync::Mutex;

use crate::store::url::{Address, Login, RedisSettings, TlsSettings, Topology};

/// Connections held: one carries everything, a second keeps small answers from waiting behind a large one.
const LANES: usize = 2;

/// Longest wait for a connection, TLS and authentication included.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Longest wait for an answer: a script takes well under a millisecond, a slow server is no use.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_000);

/// Longest wait for everything one call does, connecting again included.
const CALL_TIMEOUT: Duration = Duration::from_millis(3_000);

/// After a failed attempt to connect nobody tries again for this long.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// Why a Redis store cannot be set up. None of it passes by itself.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file the address names cannot be read.
    #[error("{} cannot be read: check that it exists and is readable for this user", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The certificates or addresses are refused.
    #[error("the address or its certificates are refused: ca_file, cert_file and key_file take PEM files")]
    Refused(#[source] RedisError),
    /// The pool cannot be made.
    #[error("the connection pool cannot be made")]
    Pool(#[from] deadpool_redis::BuildError),
}

impl From<RedisError> for SetupError {
    fn from(error: RedisError) -> Self {
        Self::Refused(error)
    }
}

/// A handle that many calls share.
#[derive(Clone)]
pub(super) enum Wire {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Server(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Server(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Server(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

/// How connections are made.
enum Source {
    Single { pool: Pool, client: Client },
    Sentinel(Box<Mutex<SentinelClient>>),
    Cluster(ClusterClient),
}

/// A connection in use, and the pool's hold on it.
struct Held {
    wire: Wire,
    number: usize,
    _from_pool: Option<deadpool_redis::Connection>,
}

#[derive(Default)]
struct Lane {
    held: RwLock<Option<Held>>,
    /// When and why connecting failed last.
    connecting: Mutex<Option<(Instant, RedisError)>>,
}

/// The connections of one store.
pub(super) struct Connections {
    source: Source,
    lanes: [Lane; LANES],
    turn: AtomicUsize,
    made: AtomicUsize,
}

impl Connections {
    /// Prepares them; connects when first used.
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, SetupError> {
        let source = source(settings)?;
        Ok(Self {
            source,
            lanes: Default::default(),
            turn: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
        })
    }

    /// Sends a command that may be repeated.
    pub(super) async fn read<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        match self.once(command).await {
            Err(error) if breaks(&error) && !error.is_timeout() => self.once(command).await,
            answer => answer,
        }
    }

    /// Sends a command once.
    pub(super) async fn once<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        bounded(self.on_lane(async |wire| command.query_async(wire).await)).await
    }

    /// Sends several commands once, in one round trip.
    pub(super) async fn together<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        bounded(self.on_lane(async |wire| pipeline.query_async(wire).await)).await
    }

    async fn on_lane<T>(&self, send: impl AsyncFnOnce(&mut Wire) -> RedisResult<T>) -> RedisResult<T> {
        let lane = &self.lanes[self.turn.fetch_add(1, Ordering::Relaxed) % LANES];
        let (mut wire, number) = match lane.wire() {
            Some(found) => found,
            None => self.connect(lane).await?,
        };
        let answer = send(&mut wire).await;
        if let Err(error) = &answer
            && breaks(error)
        {
            lane.let_go(number);
        }
        answer
    }

    async fn connect(&self, lane: &Lane) -> RedisResult<(Wire, usize)> {
        let mut failed = lane.connecting.lock().await;
        if let Some(found) = lane.wire() {
            return Ok(found);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < CONNECT_PAUSE
        {
            return Err(error.clone());
        }
        match bounded(self.source.pooled()).await {
            Ok((wire, from_pool)) => {
                *failed = None;
                let number = self.made.fetch_add(1, Ordering::Relaxed);
                let held = Held {
                    wire: wire.clone(),
                    number,
                    _from_pool: from_pool,
                };
                *lane.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
                Ok((wire, number))
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// A connection of its own for a listener that waits for up to `answer_timeout`.
    pub(super) async fn listener(&self, answer_timeout: Duration) -> RedisResult<Wire> {
        bounded(self.source.apart(answer_timeout)).await
    }
}

impl Lane {
    fn wire(&self) -> Option<(Wire, usize)> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|held| (held.wire.clone(), held.number))
    }

    /// Lets connection `number` go, if it was not replaced meanwhile.
    fn let_go(&self, number: usize) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_some_and(|held| held.number == number) {
            *held = None;
        }
    }
}

impl Source {
    async fn pooled(&self) -> RedisResult<(Wire, Option<deadpool_redis::Connection>)> {
        match self {
            Self::Single { pool, .. } => {
                let connection = pool.get().await.map_err(|error| match error {
                    PoolError::Backend(error) => error,
                    _ => (ErrorKind::Io, "no connection in time").into(),
                })?;
                Ok((Wire::Server((*connection).clone()), Some(connection)))
            }
            Self::Sentinel(_) | Self::Cluster(_) => Ok((self.apart(ANSWER_TIMEOUT).await?, None)),
        }
    }

    async fn apart(&self, answer_timeout: Duration) -> RedisResult<Wire> {
        let config = connection_config(answer_timeout);
        Ok(match self {
            Self::Single { client, .. } => Wire::Server(
                client
                    .get_multiplexed_async_connection_with_config(&config)
                    .await?,
            ),
            Self::Sentinel(client) => Wire::Server(
                client
                    .lock()
                    .await
                    .get_async_connection_with_config(&config)
                    .await?,
            ),
            Self::Cluster(client) => {
                let config = ClusterConfig::new()
                    .set_connection_timeout(CONNECT_TIMEOUT)
                    .set_response_timeout(answer_timeout);
                Wire::Cluster(client.get_async_connection_with_config(config).await?)
            }
        })
    }
}

/// Whether a connection that answered so is of no use any more: broken, silent, or not the master's.
fn breaks(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(
                ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown | ServerErrorKind::BusyLoading
            )
        )
}

async fn bounded<T>(work: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    match tokio::time::timeout(CALL_TIMEOUT, work).await {
        Ok(answer) => answer,
        Err(_) => Err((ErrorKind::Io, "no answer in time").into()),
    }
}

fn connection_config(answer_timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(answer_timeout))
}

fn source(settings: &RedisSettings) -> Result<Source, SetupError> {
    let certificates = settings.tls.as_ref().map(certificates).transpose()?;
    Ok(match &settings.topology {
        Topology::Single(server) => single(settings, server, certificates)?,
        Topology::Sentinel {
            sentinels,
            master,
            login,
        } => {
            let servers = sentinels.iter().map(|server| address(server, settings));
            let mut builder = SentinelClientBuilder::new(servers, master, SentinelServerType::Master)?
                .set_client_to_redis_db(settings.database);
            if let Some(user) = &settings.login.user {
                builder = builder.set_client_to_redis_username(user);
            }
            if let Some(password) = &settings.login.password {
                builder = builder.set_client_to_redis_password(password.expose());
            }
            if let Some(user) = &login.user {
                builder = builder.set_client_to_sentinel_username(user);
            }
            if let Some(password) = &login.password {
                builder = builder.set_client_to_sentinel_password(password.expose());
            }
            if let Some(certificates) = certificates {
                builder = builder
                    .set_client_to_redis_tls_mode(TlsMode::Secure)
                    .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                    .set_client_to_redis_certificates(certificates.clone())
                    .set_client_to_sentinel_certificates(certificates);
            }
            Source::Sentinel(Box::new(Mutex::new(builder.build()?)))
        }
        Topology::Cluster(nodes) => {
            let nodes = nodes.iter().map(|node| connection_info(node, settings));
            let nodes = nodes.collect::<RedisResult<Vec<_>>>()?;
            let mut builder = ClusterClientBuilder::new(nodes).connection_timeout(CONNECT_TIMEOUT);
            builder = builder.response_timeout(ANSWER_TIMEOUT);
            if let Some(certificates) = certificates {
                builder = builder.tls(TlsMode::Secure).certs(certificates);
            }
            Source::Cluster(builder.build()?)
        }
    })
}

fn single(
    settings: &RedisSettings,
    server: &Address,
    certificates: Option<TlsCertificates>,
) -> Result<Source, SetupError> {
    let info = connection_info(server, settings)?;
    let client = match certificates {
        Some(certificates) => Client::build_with_tls(info, certificates)?,
        None => Client::open(info)?,
    };
    let info = client.get_connection_info().clone();
    let manager = Manager::new_with_config(info, connection_config(ANSWER_TIMEOUT))?;
    let timeouts = Timeouts {
        wait: Some(CALL_TIMEOUT),
        create: Some(CONNECT_TIMEOUT),
        recycle: Some(CONNECT_TIMEOUT),
    };
    let pool = Pool::builder(manager)
        .max_size(LANES)
        .timeouts(timeouts)
        .runtime(Runtime::Tokio1)
        .build()?;
    Ok(Source::Single { pool, client })
}

fn address(server: &Address, settings: &RedisSettings) -> ConnectionAddr {
    let (host, port) = (server.host.clone(), server.port);
    match settings.tls {
        None => ConnectionAddr::Tcp(host, port),
        Some(_) => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            tls_params: None,
        },
    }
}

fn connection_info(server: &Address, settings: &RedisSettings) -> RedisResult<ConnectionInfo> {
    let Login { user, password } = &settings.login;
    let mut login = RedisConnectionInfo::default().set_db(settings.database);
    if let Some(user) = user {
        login = login.set_username(user);
    }
    if let Some(password) = password {
        login = login.set_password(password.expose());
    }
    Ok(address(server, settings)
        .into_connection_info()?
        .set_redis_settings(login))
}

fn certificates(tls: &TlsSettings) -> Result<TlsCertificates, SetupError> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|source| SetupError::File {
            path: path.clone(),
            source,
        })
    };
    let client_tls = match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig {
            client_cert: read(cert)?,
            client_key: read(key)?,
        }),
        _ => None,
    };
    Ok(TlsCertificates {
        client_tls,
        root_cert: tls.ca_file.as_ref().map(read).transpose()?,
    })
}
