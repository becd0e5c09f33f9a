//! `SESSION_STORE`: where the sessions are kept, as an address.
//!
//! ```text
//! memory:
//! file:PATH
//! redis://[user:password@]host[:port][/db]             rediss:// with TLS
//! redis-sentinel://[user:password@]h1:p,h2:p/master    rediss-sentinel:// with TLS
//! redis-cluster://[user:password@]h1:p,h2:p            rediss-cluster:// with TLS
//! ```
//! Query parameters: `ca_file`, `cert_file` and `key_file` (TLS; PEM files), `db` (Sentinel), `sentinel_user` and
//! `sentinel_password` (Sentinel), `prefix` (of all keys). User names, passwords and values are percent-encoded.
//!
//! Invariant: neither `Debug` nor an error ever shows a password, and no error repeats the address.

use std::path::PathBuf;
use std::str::FromStr;

use chassis::secret::Secret;
use percent_encoding::percent_decode_str;

/// Prefix of every key of this service, so that an engine can be shared.
const DEFAULT_PREFIX: &str = "vestibule";

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Where sessions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In this process; gone with it.
    Memory,
    /// In one file of this process.
    File(PathBuf),
    /// In Redis or Valkey, shared by all replicas.
    Redis(Box<RedisSettings>),
}

/// How Redis is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// Which servers, and how they stand together.
    pub(crate) topology: Topology,
    /// Who we are to the servers that keep the sessions.
    pub(crate) login: Login,
    /// Number of the logical database; always 0 in a cluster.
    pub(crate) database: i64,
    /// TLS, if it is used.
    pub(crate) tls: Option<TlsSettings>,
    /// Prefix of every key.
    pub(crate) prefix: String,
}

/// How Redis servers stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server, or one address that always leads to the current one.
    Single(ServerAddress),
    /// A master that Sentinels watch and replace.
    Sentinel {
        /// The Sentinels.
        sentinels: Vec<ServerAddress>,
        /// What they call the master.
        master: String,
        /// Who we are to the Sentinels.
        login: Login,
    },
    /// A cluster; some of its nodes.
    Cluster(Vec<ServerAddress>),
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    /// Name or address; IPv6 without brackets.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
}

/// User name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    /// ACL user; none is the default user.
    pub(crate) user: Option<String>,
    /// Its password.
    pub(crate) password: Option<Secret<String>>,
}

/// What TLS connections trust and show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsSettings {
    /// Certificates to trust instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Our own certificate, for servers that require one.
    pub(crate) cert_file: Option<PathBuf>,
    /// Its key.
    pub(crate) key_file: Option<PathBuf>,
}

/// What is wrong with a store's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// The scheme is none of ours.
    #[error(
        "starts with no known scheme: use memory:, file:PATH, redis://, rediss://, redis-sentinel:// or redis-cluster:// (rediss-… for TLS)"
    )]
    Scheme,
    /// `memory:` with something behind it.
    #[error("memory: takes nothing behind the colon")]
    Memory,
    /// `file:` without a path.
    #[error("file: needs a path, as in file:/var/lib/vestibule/sessions")]
    File,
    /// A host is empty or its port is not a number.
    #[error("a server is not HOST or HOST:PORT (an IPv6 address stands in brackets)")]
    Server,
    /// A '/' or '?' in front of an '@': the user name or password is cut there.
    #[error(
        "an '@' stands behind a '/' or '?': percent-encode them in the user name, the password and parameters (%2F for '/', %3F for '?', %40 for '@')"
    )]
    NotEncoded,
    /// Several servers where there can be one.
    #[error("redis:// takes one server; several need redis-sentinel:// or redis-cluster://")]
    SeveralServers,
    /// Sentinel without the master's name.
    #[error(
        "redis-sentinel:// needs the master's name behind the servers, as in redis-sentinel://h1:26379,h2:26379/mymaster"
    )]
    Master,
    /// The database is not a number.
    #[error("the database is not a whole number")]
    Database,
    /// A cluster has one database.
    #[error("redis-cluster:// takes no path: a cluster has only database 0")]
    ClusterPath,
    /// Text that is not UTF-8 once decoded.
    #[error("the user name, password or a parameter is not percent-encoded UTF-8")]
    Encoding,
    /// TLS files without TLS.
    #[error(
        "ca_file, cert_file and key_file need TLS: use rediss://, rediss-sentinel:// or rediss-cluster://"
    )]
    TlsWithoutTls,
    /// A certificate without its key or the other way round.
    #[error("cert_file and key_file go together")]
    CertificateWithoutKey,
    /// A key prefix that would break hash tags or be hard to read.
    #[error("prefix takes 1 to 32 letters, digits, '-', '_', '.' or ':'")]
    Prefix,
    /// A parameter nobody knows, or one that has no meaning here.
    #[error(
        "has an unknown parameter: ca_file, cert_file, key_file, prefix, and for Sentinel db, sentinel_user, sentinel_password are known"
    )]
    Parameter,
}

impl FromStr for StoreSettings {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        if let Some(rest) = text.strip_prefix("memory:") {
            return if rest.is_empty() {
                Ok(Self::Memory)
            } else {
                Err(StoreUrlError::Memory)
            };
        }
        if let Some(path) = text.strip_prefix("file:") {
            let path = path
                .strip_prefix("//")
                .filter(|path| path.starts_with('/'))
                .unwrap_or(path);
            return if path.is_empty() {
                Err(StoreUrlError::File)
            } else {
                Ok(Self::File(path.into()))
            };
        }
        let (scheme, rest) = text.split_once("://").ok_or(StoreUrlError::Scheme)?;
        let (kind, tls) = match scheme {
            "redis" => (TopologyKind::Single, false),
            "rediss" => (TopologyKind::Single, true),
            "redis-sentinel" => (TopologyKind::Sentinel, false),
            "rediss-sentinel" => (TopologyKind::Sentinel, true),
            "redis-cluster" => (TopologyKind::Cluster, false),
            "rediss-cluster" => (TopologyKind::Cluster, true),
            _ => return Err(StoreUrlError::Scheme),
        };
        match redis(kind, tls, rest) {
            Ok(settings) => Ok(Self::Redis(Box::new(settings))),
            // A cut password is read as a port or a parameter.
            Err(StoreUrlError::Server | StoreUrlError::Parameter) if is_cut_login(rest) => {
                Err(StoreUrlError::NotEncoded)
            }
            Err(error) => Err(error),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TopologyKind {
    Single,
    Sentinel,
    Cluster,
}

fn redis(kind: TopologyKind, tls: bool, rest: &str) -> Result<RedisSettings, StoreUrlError> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if path.contains('@') {
        return Err(StoreUrlError::NotEncoded);
    }
    let (login, servers) = match authority.rsplit_once('@') {
        Some((login, servers)) => (parse_login(login)?, servers),
        None => (Login::default(), authority),
    };
    let mut parameters = Parameters::parse(kind, query)?;
    let default_port = if kind == TopologyKind::Sentinel {
        SENTINEL_PORT
    } else {
        REDIS_PORT
    };
    let mut servers = servers
        .split(',')
        .map(|server| parse_server(server, default_port));
    let mut database = parameters.database;
    let topology = match kind {
        TopologyKind::Single => {
            let server = servers.next().ok_or(StoreUrlError::Server)??;
            if servers.next().is_some() {
                return Err(StoreUrlError::SeveralServers);
            }
            database = if path.is_empty() { 0 } else { parse_database(path)? };
            Topology::Single(server)
        }
        TopologyKind::Sentinel => {
            let master = decode(path)?;
            if master.is_empty() || master.contains('/') {
                return Err(StoreUrlError::Master);
            }
            let login = std::mem::take(&mut parameters.sentinel_login);
            Topology::Sentinel {
                sentinels: servers.collect::<Result<_, _>>()?,
                master,
                login,
            }
        }
        TopologyKind::Cluster if !path.is_empty() => return Err(StoreUrlError::ClusterPath),
        TopologyKind::Cluster => Topology::Cluster(servers.collect::<Result<_, _>>()?),
    };
    let tls = parameters.tls(tls)?;
    Ok(RedisSettings {
        topology,
        login,
        database,
        tls,
        prefix: parameters.prefix,
    })
}

fn is_cut_login(address: &str) -> bool {
    address
        .split_once(['/', '?'])
        .is_some_and(|(_, rest)| rest.contains('@'))
}

fn decode(text: &str) -> Result<String, StoreUrlError> {
    Ok(percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| StoreUrlError::Encoding)?
        .into_owned())
}

fn parse_login(text: &str) -> Result<Login, StoreUrlError> {
    let (user, password) = text
        .split_once(':')
        .map_or((text, None), |(user, password)| (user, Some(password)));
    let user = decode(user)?;
    let password = password
        .map(decode)
        .transpose()?
        .filter(|password| !password.is_empty());
    Ok(Login {
        user: Some(user).filter(|user| !user.is_empty()),
        password: password.map(Secret::new),
    })
}

fn parse_server(text: &str, default_port: u16) -> Result<ServerAddress, StoreUrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(StoreUrlError::Server)?;
            let port = if after.is_empty() {
                None
            } else {
                after.strip_prefix(':').or(Some(""))
            };
            (host, port)
        }
        None => text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port
        .map_or(Ok(default_port), str::parse)
        .map_err(|_| StoreUrlError::Server)?;
    if host.is_empty() || port == 0 || host.contains(|character: char| character.is_whitespace()) {
        return Err(StoreUrlError::Server);
    }
    Ok(ServerAddress {
        host: host.to_owned(),
        port,
    })
}

fn parse_database(text: &str) -> Result<i64, StoreUrlError> {
    text.parse::<u16>()
        .map(i64::from)
        .map_err(|_| StoreUrlError::Database)
}

struct Parameters {
    files: TlsSettings,
    prefix: String,
    database: i64,
    sentinel_login: Login,
}

impl Parameters {
    fn parse(kind: TopologyKind, query: &str) -> Result<Self, StoreUrlError> {
        let mut parsed = Self {
            files: TlsSettings::default(),
            prefix: DEFAULT_PREFIX.to_owned(),
            database: 0,
            sentinel_login: Login::default(),
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or(StoreUrlError::Parameter)?;
            let value = decode(value)?;
            match (name, kind) {
                ("ca_file", _) => parsed.files.ca_file = Some(value.into()),
                ("cert_file", _) => parsed.files.cert_file = Some(value.into()),
                ("key_file", _) => parsed.files.key_file = Some(value.into()),
                ("prefix", _) => parsed.prefix = value,
                ("db", TopologyKind::Sentinel) => parsed.database = parse_database(&value)?,
                ("sentinel_user", TopologyKind::Sentinel) => parsed.sentinel_login.user = Some(value),
                ("sentinel_password", TopologyKind::Sentinel) => {
                    parsed.sentinel_login.password = Some(Secret::new(value))
                }
                _ => return Err(StoreUrlError::Parameter),
            }
        }
        let plain = |character: char| character.is_ascii_alphanumeric() || "-_.:".contains(character);
        if parsed.prefix.is_empty() || parsed.prefix.len() > 32 || !parsed.prefix.chars().all(plain) {
            return Err(StoreUrlError::Prefix);
        }
        Ok(parsed)
    }

    fn tls(&self, used: bool) -> Result<Option<TlsSettings>, StoreUrlError> {
        match (used, &self.files) {
            (false, files) if *files != TlsSettings::default() => Err(StoreUrlError::TlsWithoutTls),
            (_, files) if files.cert_file.is_some() != files.key_file.is_some() => {
                Err(StoreUrlError::CertificateWithoutKey)
            }
            (used, files) => Ok(used.then(|| files.clone())),
        }
    }
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
