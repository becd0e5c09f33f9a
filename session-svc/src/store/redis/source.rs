//! How connections are made: from an address to the pool or client of its topology.
//!
//! A single server goes through deadpool's pool. Behind Sentinels the server is the one `master` follows. A cluster
//! connection keeps, checks and replaces one connection to each node itself; deadpool's managers for it take
//! neither time limits nor certificates.
//!
//! A connection to a single server or behind Sentinels is verified with ROLE before it is used (Redis, "Guidelines for Redis
//! clients with support for Redis Sentinel", step 3).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chassis::runtime::SCHEDULERS_MAX;
use deadpool_redis::redis::aio::{ConnectionLike, MultiplexedConnection};
use deadpool_redis::redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConfig};
use deadpool_redis::redis::cluster_async::ClusterConnection;
use deadpool_redis::redis::io::tcp::TcpSettings;
use deadpool_redis::redis::{
    self, AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisFuture, RedisResult, Role,
    ServerErrorKind, TlsCertificates, TlsMode, Value,
};
use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts};

use crate::store::url::{Address, Login, RedisSettings, TlsSettings, Topology};

use super::connections::CALL_TIMEOUT;
use super::lanes::Lanes;
use super::master::Master;

/// Longest wait for a connection, TLS and authentication included.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Longest wait for an answer: a script takes well under a millisecond, a slow server is no use.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_000);

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
pub(super) enum Source {
    Single { pool: Pool, client: Client },
    Sentinel(Master),
    Cluster(ClusterClient),
}

impl Source {
    /// Prepares them. Behind Sentinels the master is followed from now on, and `lanes` are let go with it.
    pub(super) fn new(settings: &RedisSettings, lanes: &Arc<Lanes>) -> Result<Self, SetupError> {
        make(settings, lanes)
    }

    /// A connection for the calls of all, and the pool's hold on it.
    pub(super) async fn pooled(&self) -> RedisResult<(Wire, Option<deadpool_redis::Connection>)> {
        let Self::Single { pool, .. } = self else {
            return Ok((self.apart(ANSWER_TIMEOUT).await?, None));
        };
        let pooled = pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            _ => (ErrorKind::Io, "no connection in time").into(),
        })?;
        let connection = (*pooled).clone();
        if let Err(error) = verify(connection.clone(), Unsaid::Believed).await {
            drop(deadpool_redis::Connection::take(pooled));
            return Err(error);
        }
        Ok((Wire::Server(connection), Some(pooled)))
    }

    /// A connection of its own.
    pub(super) async fn apart(&self, answer_timeout: Duration) -> RedisResult<Wire> {
        let (client, unsaid) = match self {
            Self::Single { client, .. } => (client.clone(), Unsaid::Believed),
            Self::Sentinel(master) => (master.client().await?, Unsaid::Refused),
            Self::Cluster(client) => {
                let config = ClusterConfig::new()
                    .set_connection_timeout(CONNECT_TIMEOUT)
                    .set_response_timeout(answer_timeout);
                return Ok(Wire::Cluster(
                    client.get_async_connection_with_config(config).await?,
                ));
            }
        };
        let config = connection_config(answer_timeout);
        let connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        verify(connection.clone(), unsaid).await?;
        Ok(Wire::Server(connection))
    }

    /// Whether several servers share the keys.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Asks who is the master, where somebody can be asked.
    pub(super) fn look(&self) {
        if let Self::Sentinel(master) = self {
            master.look();
        }
    }
}

/// What to think of a server that may not be asked for its role.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsaid {
    Believed,
    Refused,
}

/// Refuses a server that is no master.
pub(super) async fn verify(mut connection: MultiplexedConnection, unsaid: Unsaid) -> RedisResult<()> {
    match redis::cmd("ROLE").query_async(&mut connection).await {
        Ok(Role::Primary { .. }) => Ok(()),
        Ok(_) => Err(not_the_master()),
        Err(error) if unsaid == Unsaid::Believed && is_refused(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether the question was refused, for want of a right or because the server does not know it.
fn is_refused(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::NoPerm | ServerErrorKind::ResponseError)
    )
}

/// What calls are told of a server that turned out to be a replica.
pub(super) fn not_the_master() -> RedisError {
    (ErrorKind::Io, "the server is not the master").into()
}

/// Bounds of a connection whose answers take at most so long.
pub(super) fn connection_config(answer_timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(answer_timeout))
}

fn make(settings: &RedisSettings, lanes: &Arc<Lanes>) -> Result<Source, SetupError> {
    let certificates = settings.tls.as_ref().map(certificates).transpose()?;
    Ok(match &settings.topology {
        Topology::Single(server) => single(settings, server, certificates)?,
        Topology::Sentinel {
            sentinels,
            master,
            login,
        } => {
            let sentinels = sentinels.iter().map(|server| {
                let info = connection_info(server, settings, login, 0)?;
                client(info, certificates.clone())
            });
            let sentinels = sentinels.collect::<RedisResult<Vec<_>>>()?;
            let probe = format!("{}:w", settings.prefix);
            let settings = settings.clone();
            let make = move |server: &Address| {
                let info = connection_info(server, &settings, &settings.login, settings.database)?;
                client(info, certificates.clone())
            };
            let lanes = Arc::clone(lanes);
            Source::Sentinel(Master::follow(sentinels, master, Box::new(make), probe, lanes))
        }
        Topology::Cluster(nodes) => {
            let nodes = nodes
                .iter()
                .map(|node| connection_info(node, settings, &settings.login, settings.database));
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
    let info = connection_info(server, settings, &settings.login, settings.database)?;
    let client = client(info, certificates)?;
    let info = client.get_connection_info().clone();
    let manager = Manager::new_with_config(info, connection_config(ANSWER_TIMEOUT))?;
    let timeouts = Timeouts {
        wait: Some(CALL_TIMEOUT),
        create: Some(CONNECT_TIMEOUT),
        recycle: Some(CONNECT_TIMEOUT),
    };
    let pool = Pool::builder(manager)
        .max_size(SCHEDULERS_MAX)
        .timeouts(timeouts)
        .runtime(Runtime::Tokio1)
        .build()?;
    Ok(Source::Single { pool, client })
}

fn client(info: ConnectionInfo, certificates: Option<TlsCertificates>) -> RedisResult<Client> {
    match certificates {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    }
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

fn connection_info(
    server: &Address,
    settings: &RedisSettings,
    login: &Login,
    database: i64,
) -> RedisResult<ConnectionInfo> {
    let Login { user, password } = login;
    let mut login = RedisConnectionInfo::default().set_db(database);
    if let Some(user) = user {
        login = login.set_username(user);
    }
    if let Some(password) = password {
        login = login.set_password(password.expose());
    }
    Ok(address(server, settings)
        .into_connection_info()?
        .set_tcp_settings(undelayed())
        .set_redis_settings(login))
}

/// Many calls share a connection: the kernel is not to keep one call's command until the answer to another's is there
/// (RFC 9293, section 3.7.4), a round trip later.
fn undelayed() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
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
