//! Makes connections: from settings to a server of their topology.
//!
//! deadpool-redis' manager makes each connection to a server. A cluster connection keeps, checks and replaces
//! one connection to each node itself.
//!
//! A connection to a single server or behind Sentinels is verified with ROLE before it is used (Redis,
//! "Guidelines for Redis clients with support for Redis Sentinel", step 3).

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::store::url::{Login, RedisSettings, ServerAddress, TlsSettings, Topology};
use deadpool::managed::Manager as _;
use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisResult, Role, ServerErrorKind,
    TlsCertificates, TlsMode,
};

use super::sentinels::Master;

/// Longest wait for a connection, TLS and authentication included.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Longest wait for an answer. A script takes well under a millisecond; a slower server is of no use.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_000);

/// Pauses between the tries of a cluster's client in milliseconds. Without a limit, a request that waits for its
/// next try would outlive its call by minutes, and delay commands for several nodes (`INFO`) as long.
const RETRY_WAIT_MIN_MS: u64 = 20;
const RETRY_WAIT_MAX_MS: u64 = 500;

/// Why a Redis store cannot be set up. A retry does not help.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The service cannot read a file that the address names.
    #[error("{} cannot be read: check that it exists and is readable for this user", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// TLS without `ca_file`, on a system without certificate authorities.
    #[error(
        "this system has no authorities to trust, as in an image made from scratch: name the store's own by ca_file in SESSION_STORE, or a file of authorities in the variable SSL_CERT_FILE"
    )]
    NoAuthorities,
    /// The system's certificate authorities, which every TLS connection needs, cannot be read.
    #[error("the system's authorities cannot be read: check SSL_CERT_FILE and SSL_CERT_DIR")]
    Authorities(#[source] rustls_native_certs::Error),
    /// The pool cannot be made.
    #[error("the pool of connections cannot be made")]
    Pool(#[from] deadpool::managed::BuildError),
    /// The certificates or addresses are refused.
    #[error("the address or its certificates are refused: ca_file, cert_file and key_file take PEM files")]
    Refused(#[from] RedisError),
}

/// A connection handle that many calls share.
#[derive(Clone)]
pub(super) enum SharedConnection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl SharedConnection {
    /// Sends a command.
    pub(super) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match self {
            Self::Server(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }

    /// Sends several commands in one round trip.
    pub(super) async fn ask_all<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> RedisResult<T> {
        match self {
            Self::Server(connection) => pipeline.query_async(connection).await,
            Self::Cluster(connection) => pipeline.query_async(connection).await,
        }
    }
}

/// Makes connections to the servers of the settings.
pub(super) struct ConnectionSource {
    settings: RedisSettings,
    certificates: Option<TlsCertificates>,
    servers: Servers,
    /// How many connections broke. After each one, the other connections are checked: often their server ended.
    breaks: AtomicU64,
}

/// The servers to connect to.
enum Servers {
    Single(ServerAddress),
    Sentinel(Master),
    Cluster(Box<ClusterClient>),
}

impl ConnectionSource {
    /// Prepares connections. With Sentinels, it follows the master from now on.
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, SetupError> {
        let certificates = settings.tls.as_ref().map(certificates).transpose()?;
        // Unusable certificates fail here, not at the first connection.
        let clients = clients(settings, certificates.as_ref())?;
        let servers = match &settings.topology {
            Topology::Single(server) => Servers::Single(server.clone()),
            Topology::Sentinel { master, .. } => Servers::Sentinel(Master::follow(clients, master)),
            Topology::Cluster(_) => {
                let nodes = clients.iter().map(|node| node.get_connection_info().clone());
                let mut builder = ClusterClientBuilder::new(nodes)
                    .connection_timeout(CONNECT_TIMEOUT)
                    .min_retry_wait(RETRY_WAIT_MIN_MS)
                    .max_retry_wait(RETRY_WAIT_MAX_MS);
                if let Some(certificates) = certificates.clone() {
                    builder = builder.tls(TlsMode::Secure).certs(certificates);
                }
                Servers::Cluster(Box::new(builder.build()?))
            }
        };
        Ok(Self {
            settings: settings.clone(),
            certificates,
            servers,
            breaks: AtomicU64::new(0),
        })
    }

    /// Makes a connection whose answers may take up to `answer_timeout`. Also returns a server that Sentinels named.
    pub(super) async fn connect(
        &self,
        answer_timeout: Duration,
    ) -> RedisResult<(SharedConnection, Option<ServerAddress>)> {
        let (server, master) = match &self.servers {
            Servers::Single(server) => (server.clone(), None),
            Servers::Sentinel(master) => {
                let server = master.address().await?;
                (server.clone(), Some(server))
            }
            Servers::Cluster(all) => {
                let config = ClusterConfig::new()
                    .set_connection_timeout(CONNECT_TIMEOUT)
                    .set_response_timeout(answer_timeout);
                let connection = all.get_async_connection_with_config(config).await?;
                return Ok((SharedConnection::Cluster(connection), None));
            }
        };
        let wire = self.connect_to(&server, answer_timeout).await?;
        match &wire {
            SharedConnection::Server(connection) if !is_master(connection.clone()).await? => {
                Err(not_the_master())
            }
            _ => Ok((wire, master)),
        }
    }

    /// Makes a connection to one server.
    pub(super) async fn connect_to(
        &self,
        server: &ServerAddress,
        answer_timeout: Duration,
    ) -> RedisResult<SharedConnection> {
        let (settings, certificates) = (&self.settings, self.certificates.as_ref());
        let client = client(server, settings, certificates, &settings.login, settings.database)?;
        let info = client.get_connection_info().clone();
        let config = connection_config(answer_timeout);
        let manager = deadpool_redis::Manager::new_with_config(info, config)?;
        Ok(SharedConnection::Server(manager.create().await?))
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    /// Whether a connection to this server may be used.
    pub(super) fn is_used(&self, server: Option<&ServerAddress>) -> bool {
        match (&self.servers, server) {
            (Servers::Sentinel(master), Some(server)) => master.is(server),
            _ => true,
        }
    }

    /// Returns once connections to this server must no longer be used.
    pub(super) async fn wait_until_replaced(&self, server: Option<&ServerAddress>) {
        match (&self.servers, server) {
            (Servers::Sentinel(master), Some(server)) => master.wait_until_replaced(server).await,
            _ => std::future::pending().await,
        }
    }

    /// How many connections broke so far.
    pub(super) fn breaks(&self) -> u64 {
        self.breaks.load(Ordering::Relaxed)
    }

    /// Makes every connection check its server before its next use.
    pub(super) fn report_break(&self) {
        self.breaks.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks the Sentinels for the master, if there are Sentinels.
    pub(super) fn look(&self) {
        if let Servers::Sentinel(master) = &self.servers {
            master.look();
        }
    }
}

/// Asks a server with ROLE whether it is a master. A server that rejects this command counts as one.
pub(super) async fn is_master(mut connection: MultiplexedConnection) -> RedisResult<bool> {
    match redis::cmd("ROLE").query_async(&mut connection).await {
        Ok(role) => Ok(matches!(role, Role::Primary { .. })),
        Err(error) if is_refused(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether the server rejected the command: a right is missing, or the server does not know it.
fn is_refused(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::NoPerm | ServerErrorKind::ResponseError)
    )
}

/// The error for calls to a server that is a replica.
pub(super) fn not_the_master() -> RedisError {
    (ErrorKind::Io, "the server is not the master").into()
}

/// Time limits of a connection whose answers may take up to `answer_timeout`.
pub(super) fn connection_config(answer_timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(answer_timeout))
}

/// Reads the certificates and builds the clients without connecting, to reject bad settings at the start.
pub(crate) fn check(settings: &RedisSettings) -> Result<(), SetupError> {
    let certificates = settings.tls.as_ref().map(certificates).transpose()?;
    clients(settings, certificates.as_ref())?;
    Ok(())
}

/// A client for each server that the settings name. Does not connect.
fn clients(settings: &RedisSettings, certificates: Option<&TlsCertificates>) -> RedisResult<Vec<Client>> {
    let (servers, login, database) = match &settings.topology {
        Topology::Single(server) => (std::slice::from_ref(server), &settings.login, settings.database),
        Topology::Sentinel { sentinels, login, .. } => (sentinels.as_slice(), login, 0),
        Topology::Cluster(nodes) => (nodes.as_slice(), &settings.login, settings.database),
    };
    let clients = servers
        .iter()
        .map(|server| client(server, settings, certificates, login, database));
    clients.collect()
}

fn client(
    server: &ServerAddress,
    settings: &RedisSettings,
    certificates: Option<&TlsCertificates>,
    login: &Login,
    database: i64,
) -> RedisResult<Client> {
    let (host, port) = (server.host.clone(), server.port);
    let address = match settings.tls {
        None => ConnectionAddr::Tcp(host, port),
        Some(_) => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            tls_params: None,
        },
    };
    let Login { user, password } = login;
    let mut login = RedisConnectionInfo::default().set_db(database);
    if let Some(user) = user {
        login = login.set_username(user);
    }
    if let Some(password) = password {
        login = login.set_password(password.expose());
    }
    let info = address
        .into_connection_info()?
        .set_tcp_settings(undelayed())
        .set_redis_settings(login);
    match certificates {
        Some(certificates) => Client::build_with_tls(info, certificates.clone()),
        None => Client::open(info),
    }
}

/// Turns off Nagle's algorithm (RFC 9293, section 3.7.4). Many calls share a connection: the kernel must not
/// delay one call's command until the answer to another call, a round trip later.
fn undelayed() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

/// Reads the files. Loads the system's authorities first, as the client does for every connection, so that
/// errors in them surface at the start and not at the first handshake.
fn certificates(tls: &TlsSettings) -> Result<TlsCertificates, SetupError> {
    let mut authorities = rustls_native_certs::load_native_certs();
    if let Some(error) = authorities.errors.pop() {
        return Err(SetupError::Authorities(error));
    }
    if tls.ca_file.is_none() && authorities.certs.is_empty() {
        return Err(SetupError::NoAuthorities);
    }
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
