//! `SESSION_STORE`: where the sessions are kept, as an address.
//!
//! ```text
//! memory:
//! file:PATH
//! redis://[user:password@]host[:port][/db]             rediss:// with TLS
//! redis-sentinel://[user:password@]h1:p,h2:p/master    rediss-sentinel:// with TLS
//! redis-cluster://[user:password@]h1:p,h2:p            rediss-cluster:// with TLS
//! ```
//! Query parameters: `ca_file`, `cert_file` and `key_file` (TLS; PEM files), `db` (Sentinel), `sentinel_user`
//! and `sentinel_password` (Sentinel), `prefix` (of all keys). All values are percent-encoded.
//!
//! Invariant: neither `Debug` nor an error ever shows a password, and no error repeats the address.

use std::path::PathBuf;
use std::str::FromStr;

use chassis::secret::Secret;
use percent_encoding::percent_decode_str;
use url::Url;

/// Prefix of every key of this service, so that an engine can be shared.
const DEFAULT_PREFIX: &str = "vestibule";

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Where sessions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In memory, lost when the process ends.
    Memory,
    /// In one file of this process.
    File(PathBuf),
    /// In Redis or Valkey, shared by all replicas.
    Redis(Box<RedisSettings>),
}

/// How Redis is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// Which servers, and how they are organized.
    pub(crate) topology: Topology,
    /// The login at the servers that keep the sessions.
    pub(crate) login: Login,
    /// Number of the logical database; always 0 in a cluster.
    pub(crate) database: i64,
    /// TLS, if it is used.
    pub(crate) tls: Option<TlsSettings>,
    /// Prefix of every key.
    pub(crate) prefix: String,
}

/// How Redis servers are organized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server, or one address that always leads to the current server.
    Single(ServerAddress),
    /// A master that Sentinels watch and replace.
    Sentinel {
        /// The Sentinels.
        sentinels: Vec<ServerAddress>,
        /// The Sentinels' name for the master.
        master: String,
        /// The login at the Sentinels.
        login: Login,
    },
    /// A cluster, by some of its nodes.
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
    /// ACL user; `None` is the default user.
    pub(crate) user: Option<String>,
    /// Its password.
    pub(crate) password: Option<Secret<String>>,
}

/// What TLS connections trust and present.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreUrlError(&'static str);

const SCHEME: &str = "starts with no known scheme: use memory:, file:PATH, redis://, rediss://, redis-sentinel:// or redis-cluster:// (rediss-… for TLS)";
const MEMORY: &str = "memory: takes nothing after the colon";
const FILE: &str = "file: needs a path, as in file:/var/lib/vestibule/sessions";
const SERVER: &str = "a server is not HOST or HOST:PORT (an IPv6 address stands in brackets)";
/// A '/' or '?' before an '@' cuts the user name or password short.
const NOT_ENCODED: &str = "an '@' follows a '/' or '?': percent-encode them in the user name, the password and parameters (%2F for '/', %3F for '?', %40 for '@')";
const SEVERAL_SERVERS: &str = "redis:// takes one server; several need redis-sentinel:// or redis-cluster://";
const MASTER: &str = "redis-sentinel:// needs the master's name after the servers, as in redis-sentinel://h1:26379,h2:26379/mymaster";
const DATABASE: &str = "the database is not a whole number";
const CLUSTER_PATH: &str = "redis-cluster:// takes no path: a cluster has only database 0";
const ENCODING: &str = "the user name, password or a parameter is not percent-encoded UTF-8";
const TLS_WITHOUT_TLS: &str =
    "ca_file, cert_file and key_file need TLS: use rediss://, rediss-sentinel:// or rediss-cluster://";
const CERTIFICATE_WITHOUT_KEY: &str = "cert_file and key_file go together";
/// A key prefix that would break hash tags or be hard to read.
const PREFIX: &str = "prefix takes 1 to 32 letters, digits, '-', '_', '.' or ':'";
const PARAMETER: &str = "has an unknown parameter: ca_file, cert_file, key_file, prefix, and for Sentinel db, sentinel_user, sentinel_password are known";

impl FromStr for StoreSettings {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        parse(text).map_err(StoreUrlError)
    }
}

fn parse(text: &str) -> Result<StoreSettings, &'static str> {
    match text.split_once(':') {
        Some(("memory", "")) => return Ok(StoreSettings::Memory),
        Some(("memory", _)) => return Err(MEMORY),
        Some(("file", "")) => return Err(FILE),
        Some(("file", path)) => {
            let absolute = path.strip_prefix("//").filter(|path| path.starts_with('/'));
            return Ok(StoreSettings::File(absolute.unwrap_or(path).into()));
        }
        _ => {}
    }
    let (scheme, rest) = text.split_once("://").ok_or(SCHEME)?;
    let (kind, tls) = match scheme.strip_prefix("rediss") {
        Some(kind) => (kind, true),
        None => (scheme.strip_prefix("redis").ok_or(SCHEME)?, false),
    };
    match parse_redis(kind, tls, rest) {
        Ok(settings) => Ok(StoreSettings::Redis(Box::new(settings))),
        // The parser reads the rest of a cut password as a port or a parameter.
        Err(SERVER | PARAMETER) if is_cut_login(rest) => Err(NOT_ENCODED),
        Err(error) => Err(error),
    }
}

/// `kind` is the part of the scheme after "redis" or "rediss".
fn parse_redis(kind: &str, tls: bool, rest: &str) -> Result<RedisSettings, &'static str> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if path.contains('@') {
        return Err(NOT_ENCODED);
    }
    let (login, servers) = authority.rsplit_once('@').unwrap_or(("", authority));
    let default_port = match kind {
        "-sentinel" => SENTINEL_PORT,
        _ => REDIS_PORT,
    };
    let servers = servers.split(',');
    let mut servers = servers.map(|server| parse_server(server, default_port));
    let topology = match kind {
        "" => {
            let server = servers.next().ok_or(SERVER)??;
            if servers.next().is_some() {
                return Err(SEVERAL_SERVERS);
            }
            Topology::Single(server)
        }
        "-sentinel" => {
            let master = decode(path)?;
            if master.is_empty() || master.contains('/') {
                return Err(MASTER);
            }
            Topology::Sentinel {
                sentinels: servers.collect::<Result<_, _>>()?,
                master,
                login: Login::default(),
            }
        }
        "-cluster" if !path.is_empty() => return Err(CLUSTER_PATH),
        "-cluster" => Topology::Cluster(servers.collect::<Result<_, _>>()?),
        _ => return Err(SCHEME),
    };
    let mut settings = RedisSettings {
        topology,
        login: parse_login(login)?,
        database: 0,
        tls: None,
        prefix: DEFAULT_PREFIX.to_owned(),
    };
    if kind.is_empty() && !path.is_empty() {
        settings.database = parse_database(path)?;
    }
    let files = settings.read_parameters(query)?;
    if !tls && files != TlsSettings::default() {
        return Err(TLS_WITHOUT_TLS);
    }
    if files.cert_file.is_some() != files.key_file.is_some() {
        return Err(CERTIFICATE_WITHOUT_KEY);
    }
    settings.tls = tls.then_some(files);
    Ok(settings)
}

impl RedisSettings {
    /// Applies the query's parameters and returns the TLS files it names.
    fn read_parameters(&mut self, query: &str) -> Result<TlsSettings, &'static str> {
        let mut files = TlsSettings::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or(PARAMETER)?;
            let value = decode(value)?;
            match (name, &mut self.topology) {
                ("ca_file", _) => files.ca_file = Some(value.into()),
                ("cert_file", _) => files.cert_file = Some(value.into()),
                ("key_file", _) => files.key_file = Some(value.into()),
                ("prefix", _) => self.prefix = value,
                ("db", Topology::Sentinel { .. }) => self.database = parse_database(&value)?,
                ("sentinel_user", Topology::Sentinel { login, .. }) => login.user = Some(value),
                ("sentinel_password", Topology::Sentinel { login, .. }) => {
                    login.password = Some(Secret::new(value));
                }
                _ => return Err(PARAMETER),
            }
        }
        let plain = |character: char| character.is_ascii_alphanumeric() || "-_.:".contains(character);
        match (1..=32).contains(&self.prefix.len()) && self.prefix.chars().all(plain) {
            true => Ok(files),
            false => Err(PREFIX),
        }
    }
}

fn is_cut_login(address: &str) -> bool {
    address
        .split_once(['/', '?'])
        .is_some_and(|(_, rest)| rest.contains('@'))
}

fn decode(text: &str) -> Result<String, &'static str> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| ENCODING)?.into_owned())
}

fn parse_login(text: &str) -> Result<Login, &'static str> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (decode(user)?, decode(password)?);
    Ok(Login {
        user: Some(user).filter(|user| !user.is_empty()),
        password: Some(password)
            .filter(|password| !password.is_empty())
            .map(Secret::new),
    })
}

fn parse_server(text: &str, default_port: u16) -> Result<ServerAddress, &'static str> {
    let url = Url::parse(&format!("redis://{text}")).map_err(|_| SERVER)?;
    let host = url.host_str().unwrap_or_default();
    let port = url.port().unwrap_or(default_port);
    if host.is_empty() || port == 0 || url.fragment().is_some() {
        return Err(SERVER);
    }
    Ok(ServerAddress {
        host: host.trim_matches(['[', ']']).to_owned(),
        port,
    })
}

fn parse_database(text: &str) -> Result<i64, &'static str> {
    let number: u16 = text.parse().map_err(|_| DATABASE)?;
    Ok(number.into())
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
