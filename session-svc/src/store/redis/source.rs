//! How connections are made: from an address to the client of its topology.
//!
//! Behind Sentinels the server is the one `master` follows. A cluster connection keeps, checks and replaces one connection to each
//! node itself.
//!
//! A connection to a single server or behind Sentinels is verified with ROLE before it is used (Redis, "Guidelines for Redis
//! clients with support for Redis Sentinel", step 3).

use std::path::PathBuf;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisFuture, RedisResult, Role,
    ServerErrorKind, TlsCertificates, TlsMode, Value,
};
use tokio::sync::watch;

use crate::store::url::{Login, RedisSettings, ServerAddress, TlsSettings, Topology};

use super::master::{MakeClient, Master};

/// Longest wait for a connection, TLS and authentication included.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Longest wait for an answer: a script takes well under a millisecond, a slow server is no use.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_000);

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
    /// TLS without `ca_file`, on a system that has no authorities.
    #[error(
        "this system has no authorities to trust, as in an image made from scratch: name the store's own by ca_file in SESSION_STORE, or a file of authorities in the variable SSL_CERT_FILE"
    )]
    NoAuthorities,
    /// The system's authorities cannot be read, which every TLS connection begins with.
    #[error("the system's authorities cannot be read: check SSL_CERT_FILE and SSL_CERT_DIR")]
    Authorities(#[source] rustls_native_certs::Error),
    /// The certificates or addresses are refused.
    #[error("the address or its certificates are refused: ca_file, cert_file and key_file take PEM files")]
    Refused(#[source] RedisError),
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
pub(super) enum ConnectionSource {
    Single(Client),
    Sentinel(Master),
    Cluster(Box<ClusterNodes>),
}

/// How a cluster is reached.
pub(super) struct ClusterNodes {
    all: ClusterClient,
    /// Makes the client of a single node.
    make: MakeClient,
}

impl ConnectionSource {
    /// Prepares them. Behind Sentinels the master is followed from now on, and `let_go` is signalled when
    /// connections to the one before are of no use any more.
    pub(super) fn new(settings: &RedisSettings, let_go: &watch::Sender<()>) -> Result<Self, SetupError> {
        let certificates = settings.tls.as_ref().map(certificates).transpose()?;
        Ok(match &settings.topology {
            Topology::Single(server) => {
                let info = connection_info(server, settings, &settings.login, settings.database)?;
                ConnectionSource::Single(client(info, certificates)?)
            }
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
                let make = make(settings.clone(), certificates.clone());
                let let_go = let_go.clone();
                ConnectionSource::Sentinel(Master::follow(sentinels, master, make, probe, let_go))
            }
            Topology::Cluster(nodes) => {
                let nodes = nodes
                    .iter()
                    .map(|node| connection_info(node, settings, &settings.login, settings.database));
                let nodes = nodes.collect::<RedisResult<Vec<_>>>()?;
                let mut builder = ClusterClientBuilder::new(nodes).connection_timeout(CONNECT_TIMEOUT);
                builder = builder.response_timeout(ANSWER_TIMEOUT);
                if let Some(certificates) = certificates.clone() {
                    builder = builder.tls(TlsMode::Secure).certs(certificates);
                }
                let all = builder.build()?;
                let make = make(settings.clone(), certificates);
                ConnectionSource::Cluster(Box::new(ClusterNodes { all, make }))
            }
        })
    }

    /// A new connection, whose answers take at most so long.
    pub(super) async fn connect(&self, answer_timeout: Duration) -> RedisResult<Wire> {
        let (client, unsaid) = match self {
            Self::Single(client) => (client.clone(), Unsaid::Believed),
            Self::Sentinel(master) => (master.client().await?, Unsaid::Refused),
            Self::Cluster(nodes) => {
                let config = ClusterConfig::new()
                    .set_connection_timeout(CONNECT_TIMEOUT)
                    .set_response_timeout(answer_timeout);
                return Ok(Wire::Cluster(
                    nodes.all.get_async_connection_with_config(config).await?,
                ));
            }
        };
        let config = connection_config(answer_timeout);
        let connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        if !is_master(connection.clone(), unsaid).await? {
            return Err(not_the_master());
        }
        Ok(Wire::Server(connection))
    }

    /// A new connection to one node of a cluster.
    pub(super) async fn connect_to_node(
        &self,
        node: &ServerAddress,
        answer_timeout: Duration,
    ) -> RedisResult<Wire> {
        let Self::Cluster(nodes) = self else {
            return self.connect(answer_timeout).await;
        };
        let client = (nodes.make)(node)?;
        let config = connection_config(answer_timeout);
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        Ok(Wire::Server(connection.await?))
    }

    /// Looks for the master, where there are Sentinels.
    pub(super) fn look(&self) {
        if let Self::Sentinel(master) = self {
            master.look();
        }
    }
}

/// Makes the client of a server that keeps sessions.
fn make(settings: RedisSettings, certificates: Option<TlsCertificates>) -> MakeClient {
    Box::new(move |server| {
        let info = connection_info(server, &settings, &settings.login, settings.database)?;
        client(info, certificates.clone())
    })
}

/// The verdict on a server that does not permit ROLE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsaid {
    Believed,
    Refused,
}

/// Asks a server whether it is a master.
pub(super) async fn is_master(mut connection: MultiplexedConnection, unsaid: Unsaid) -> RedisResult<bool> {
    match redis::cmd("ROLE").query_async(&mut connection).await {
        Ok(role) => Ok(matches!(role, Role::Primary { .. })),
        Err(error) if unsaid == Unsaid::Believed && is_refused(&error) => Ok(true),
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

/// The error of calls to a server that turned out to be a replica.
pub(super) fn not_the_master() -> RedisError {
    (ErrorKind::Io, "the server is not the master").into()
}

/// Bounds of a connection whose answers take at most so long.
pub(super) fn connection_config(answer_timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(answer_timeout))
}

/// Reads the certificates and makes what connections are made with, and connects to nobody: what is refused here is refused at the start.
pub(crate) fn check(settings: &RedisSettings) -> Result<(), SetupError> {
    let certificates = settings.tls.as_ref().map(certificates).transpose()?;
    let servers = match &settings.topology {
        Topology::Single(server) => std::slice::from_ref(server),
        Topology::Sentinel { sentinels, .. } => sentinels,
        Topology::Cluster(nodes) => nodes,
    };
    for server in servers {
        let info = connection_info(server, settings, &settings.login, settings.database)?;
        client(info, certificates.clone())?;
    }
    Ok(())
}

fn client(info: ConnectionInfo, certificates: Option<TlsCertificates>) -> RedisResult<Client> {
    match certificates {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    }
}

fn address(server: &ServerAddress, settings: &RedisSettings) -> ConnectionAddr {
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
    server: &ServerAddress,
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

/// Reads the files. The system's authorities are looked at first, as the client does for every connection: what is wrong with
/// them is told at the start and not at the first handshake.
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
