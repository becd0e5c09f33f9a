//! How connections are made: from an address to the pool or client of its topology.
//!
//! A single server goes through deadpool's pool. Sentinel and cluster connections are made by the client itself:
//! deadpool's managers for these take neither time limits nor certificates, and a cluster connection
//! already keeps, checks and replaces one connection to each node.

use std::path::PathBuf;
use std::time::Duration;

use chassis::runtime::SCHEDULERS_MAX;
use deadpool_redis::redis::aio::{ConnectionLike, MultiplexedConnection};
use deadpool_redis::redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConfig};
use deadpool_redis::redis::cluster_async::ClusterConnection;
use deadpool_redis::redis::io::tcp::TcpSettings;
use deadpool_redis::redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisFuture, RedisResult, TlsCertificates,
    TlsMode, Value,
};
use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts};
use tokio::sync::Mutex;

use crate::store::url::{Address, Login, RedisSettings, TlsSettings, Topology};

use super::connections::CALL_TIMEOUT;

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
    Sentinel(Box<Mutex<SentinelClient>>),
    Cluster(ClusterClient),
}

impl Source {
    /// Prepares them; nothing connects yet.
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, SetupError> {
        make(settings)
    }

    /// A connection for the calls of all, and the pool's hold on it.
    pub(super) async fn pooled(&self) -> RedisResult<(Wire, Option<deadpool_redis::Connection>)> {
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

    /// A connection of its own.
    pub(super) async fn apart(&self, answer_timeout: Duration) -> RedisResult<Wire> {
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

fn connection_config(answer_timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(answer_timeout))
}

fn make(settings: &RedisSettings) -> Result<Source, SetupError> {
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
                .set_client_to_redis_db(settings.database)
                .set_client_to_redis_tcp_settings(undelayed());
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
        .max_size(SCHEDULERS_MAX)
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
