//! The session service's settings: names, defaults, manual and validation.
//!
//! Invariants: every wrong setting is reported at once; only existing features have settings; messages hold no key.

pub mod api_servers;
mod kept;
pub mod signals;
pub mod transit;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chassis::process_topic;
use chassis::secret::Secret;
use chassis::settings::{Reader, Service, Setting, Topic, Zero, setting};
use chassis::tls::{self, TlsFiles};
use provider_settings::ConfiguredProviders;

use crate::callers::{self, Policy};
use crate::receiver::TransmittersFile;
use crate::refresh;
use crate::session::Lifetime;
use crate::sessions::{SESSION_BYTES_MAX, SessionLimits, WATCH_HEARTBEAT};
use crate::store::url::StoreSettings;
use crate::transit::TransitSettings;
use crate::transmitter::Receivers;

use self::api_servers::ApiServersFile;
pub(crate) use self::kept::store_and_keys;

/// The program and all its settings.
pub static SERVICE: Service = Service {
    name: "session-svc",
    prefixes: &["SESSION_"],
    shared_prefix: Some(provider_settings::PREFIX),
    about: "Stores the sessions of signed-in users, encrypted, and gives out fresh access tokens.",
    first_settings: &[
        "SESSION_LISTEN",
        "SESSION_TLS_CERT_FILE",
        "SESSION_TLS_KEY_FILE",
        "SESSION_CLIENT_CA_FILE",
        "SESSION_CALLERS",
        "SESSION_ADMIN_LISTEN",
        "SESSION_STORE",
        "SESSION_ENCRYPTION_KEY",
        "OIDC_ISSUER_URL",
        "OIDC_CLIENT_ID",
        "OIDC_CLIENT_SECRET",
    ],
    fixed: &[],
    topics: &[
        &ADDRESSES,
        &PROCESS,
        &provider_settings::TOPIC,
        &STORE,
        &transit::TOPIC,
        &DURATIONS,
        &LIMITS,
        &API_SERVERS,
        &OPERATORS,
        &signals::TOPIC,
    ],
};

static PROCESS: Topic = process_topic!("SESSION_", "127.0.0.1:9301");

static ADDRESSES: Topic = Topic {
    title: "Addresses",
    settings: &[
        setting(
            "SESSION_LISTEN",
            "127.0.0.1:50051",
            "ADDRESS",
            "Address for gRPC calls. [::]:50051 listens on every IPv4 and IPv6 address. Without IPv6, use 0.0.0.0:50051.",
        ),
        setting(
            "SESSION_TLS_CERT_FILE",
            "",
            "FILE",
            "PEM certificate chain for TLS on SESSION_LISTEN. Needs SESSION_TLS_KEY_FILE. Read again when it changes.",
        ),
        setting(
            "SESSION_TLS_KEY_FILE",
            "",
            "FILE",
            "PEM private key that belongs to SESSION_TLS_CERT_FILE.",
        ),
        setting(
            "SESSION_CLIENT_CA_FILE",
            "",
            "FILE",
            "PEM certificates of the authorities whose clients may call (mutual TLS). With it, every caller needs a certificate. Read again when it changes.",
        ),
        setting(
            "SESSION_CALLERS",
            "",
            "FILE",
            "TOML list of which caller may call which method. Each caller has a [[caller]] table: identity (\"spiffe://…\" or \"dns:NAME\", from the client's certificate) and rpcs (method names, or \"*\" for all but the operators' methods). Needs SESSION_CLIENT_CA_FILE. Without the list, every client with a certificate of these authorities may call everything. Read again when it changes.",
        ),
        setting(
            "SESSION_INSECURE",
            "false",
            "BOOL",
            "Allows plaintext on an address other than loopback. Anyone who reaches it can read and end sessions.",
        ),
    ],
};

/// The store.
pub static STORE: Topic = Topic {
    title: "Store",
    settings: &[
        Setting {
            name: "SESSION_STORE",
            default: "memory:",
            value: "URL",
            secret: true,
            help: "Where sessions are stored. memory: loses them at exit. file:PATH is one crash-safe file. Redis is redis://, rediss://, redis-sentinel://h1:p,h2:p/master or redis-cluster://h1:p,h2:p, with user, password and parameters.",
        },
        Setting {
            name: "SESSION_ENCRYPTION_KEY",
            default: "",
            value: "LIST",
            secret: true,
            help: "Keys that encrypt sessions, each 32 bytes in hex or base64, or wrapped by Vault (vault:v1:…). Required unless the store is memory:. The first encrypts, all decrypt. To change it, append the new key on every replica, then move it to the front. Remove the old one after SESSION_ABSOLUTE_DURATION.",
        },
    ],
};

/// How long sessions live.
pub static DURATIONS: Topic = Topic {
    title: "Durations",
    settings: &[
        setting(
            "SESSION_ROLLING_DURATION",
            "86400",
            "SECONDS",
            "How long a session lives without use.",
        ),
        setting(
            "SESSION_ABSOLUTE_DURATION",
            "604800",
            "SECONDS",
            "Longest lifetime of a session. Not less than SESSION_ROLLING_DURATION.",
        ),
        setting(
            "SESSION_ROLL_INTERVAL",
            "60",
            "SECONDS",
            "Shortest time between two writes that extend a session; 0 writes at each use. The service uses at most a tenth of SESSION_ROLLING_DURATION.",
        ),
        setting(
            "SESSION_REVALIDATE_SECS",
            "0",
            "SECONDS",
            "Refreshes the tokens of a session in use if they are older than this; 0 is off. The refresh runs in the background, even if no route needs a token. If the provider rejects it, because the account or session was closed there, the session ends. The cost is at most one refresh in that time for each session in use. The service cannot check a session without a refresh token. With 0, the provider's rejection ends no session.",
        ),
    ],
};

/// What operators may search.
pub static OPERATORS: Topic = Topic {
    title: "Operators",
    settings: &[setting(
        "SESSION_OPERATOR_SEARCH",
        "false",
        "BOOL",
        "Lets operators search sessions by email, address and name, list all of a provider, and read why sessions ended. The store then has one or two more list entries for each session, and a note for 30 days after each ending. Existing sessions are found after their next use. Without SESSION_CALLERS, it also opens the operators' methods to every client (docs/operators.md).",
    )],
};

/// Limits of sessions.
pub static LIMITS: Topic = Topic {
    title: "Limits",
    settings: &[setting(
        "SESSION_MAX_PER_SUBJECT",
        "100",
        "COUNT",
        "Most sessions of one user; 0 for no limit. Above it, the service ends the sessions that were created first.",
    )],
};

/// Tokens of other authorization servers.
pub static API_SERVERS: Topic = Topic {
    title: "APIs of other trust domains",
    settings: &[setting(
        "SESSION_API_SERVERS",
        "",
        "FILE",
        "TOML list of the authorization servers of APIs in other trust domains. Each has a [[server]] table: audience (the name that routes use), issuer, client_id, client_secret_file or client_key_file, and optionally client_auth, token_endpoint, resource, scope and ca_file. Needs EDGE_STORE_ID_TOKEN. Read again when it changes, with the files it names.",
    )],
};

/// Settings are in seconds, the fields in milliseconds.
const SECOND_MS: u64 = 1_000;

/// How long other replicas wait for a replica that died during a refresh. Debug builds wait less, because chaos
/// tests kill replicas and limit the wait of callers.
const REFRESH_LEASE: Duration = if cfg!(debug_assertions) {
    Duration::from_secs(3)
} else {
    refresh::LEASE
};

/// All settings of the service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address for gRPC calls.
    pub listen: SocketAddr,
    /// TLS on that address.
    pub tls: Option<TlsFiles>,
    /// Which caller may call what, and the file to follow; `None` allows every client that can connect.
    pub callers: Option<(PathBuf, Policy)>,
    /// Where sessions are stored.
    pub store: StoreSettings,
    /// The file that contains the store's address, to follow its changes.
    pub(crate) store_file: Option<PathBuf>,
    /// Keys that encrypt sessions. Only the store in memory needs none.
    pub keys: Vec<Secret<String>>,
    /// The file that contains the keys, to follow its changes.
    pub(crate) keys_file: Option<PathBuf>,
    /// Where wrapped keys are unwrapped.
    pub(crate) transit: Option<TransitSettings>,
    /// How long sessions live.
    pub lifetime: Lifetime,
    /// Limits of the use cases.
    pub limits: SessionLimits,
    /// The providers.
    pub providers: ConfiguredProviders,
    /// The authorization servers of APIs in other trust domains.
    pub api_servers: Option<ApiServersFile>,
    /// Trusted transmitters of security events.
    pub transmitters: Option<TransmittersFile>,
    /// Receivers of events about ended sessions.
    pub receivers: Option<Receivers>,
}

/// Reads and validates all settings.
pub fn read(reader: &mut Reader<'_>) -> Settings {
    let providers = provider_settings::read(reader);
    let listen = reader.socket_addr("SESSION_LISTEN");
    if listen.is_none() && reader.text("SESSION_LISTEN").eq_ignore_ascii_case("off") {
        reader.wrong("SESSION_LISTEN", "cannot be off: no client could call");
    }
    let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let tls = listener_tls(reader, listen);
    let callers = callers(reader);
    let (store, keys, keys_file) = store_and_keys(reader);
    let transit = transit::read(reader, &keys);
    kept::check_files(reader, &store);
    let store_file = reader.secret_file("SESSION_STORE");
    let first = providers.settings().next();
    let proxy = first.and_then(|settings| settings.credentials.proxy.clone());
    let api_servers = api_servers::read(reader, &providers, proxy.clone());
    let mut signals = signals::read(reader).unwrap_or_default();
    if let Some(file) = &mut signals.transmitters {
        signals::fit_to_providers(reader, file, proxy.as_ref(), &providers);
    }
    Settings {
        listen,
        tls,
        callers,
        store,
        store_file,
        keys,
        keys_file,
        transit,
        lifetime: lifetime(reader),
        limits: SessionLimits {
            revalidate_ms: reader.secs("SESSION_REVALIDATE_SECS", Zero::Allowed) * SECOND_MS,
            refresh_lease: REFRESH_LEASE,
            max_bytes: SESSION_BYTES_MAX,
            max_per_subject: reader.count("SESSION_MAX_PER_SUBJECT"),
            operator_search: reader.flag("SESSION_OPERATOR_SEARCH"),
            watch_heartbeat: WATCH_HEARTBEAT,
        },
        providers,
        api_servers,
        transmitters: signals.transmitters,
        receivers: signals.receivers,
    }
}

fn lifetime(reader: &mut Reader<'_>) -> Lifetime {
    let rolling = reader.secs("SESSION_ROLLING_DURATION", Zero::Refused);
    let absolute = reader.secs("SESSION_ABSOLUTE_DURATION", Zero::Refused);
    if rolling > absolute {
        reader.wrong(
            "SESSION_ROLLING_DURATION",
            "must not be more than SESSION_ABSOLUTE_DURATION",
        );
    }
    Lifetime {
        rolling_ms: rolling * SECOND_MS,
        absolute_ms: absolute * SECOND_MS,
        roll_interval_ms: reader.secs("SESSION_ROLL_INTERVAL", Zero::Allowed) * SECOND_MS,
    }
}

/// Reads the list of callers. Its mistakes are mistakes of the setting.
fn callers(reader: &mut Reader<'_>) -> Option<(PathBuf, Policy)> {
    let path = reader.path("SESSION_CALLERS")?;
    if reader.path("SESSION_CLIENT_CA_FILE").is_none() {
        reader.wrong(
            "SESSION_CALLERS",
            "needs SESSION_CLIENT_CA_FILE: certificates identify the callers",
        );
    }
    let policy = reader.toml_file("SESSION_CALLERS", &path, callers::parse)?;
    Some((path, policy))
}

fn listener_tls(reader: &mut Reader<'_>, listen: SocketAddr) -> Option<TlsFiles> {
    const CERTIFICATE: &str = "SESSION_TLS_CERT_FILE";
    const KEY: &str = "SESSION_TLS_KEY_FILE";
    const CLIENT_CA: &str = "SESSION_CLIENT_CA_FILE";
    let names_any = reader.path(CERTIFICATE).is_some() || reader.path(KEY).is_some();
    let pair = tls::read_pair(reader, CERTIFICATE, KEY);
    let client_ca = tls::read_authorities(reader, CLIENT_CA);
    let insecure = reader.flag("SESSION_INSECURE");
    if !names_any {
        if client_ca.is_some() {
            reader.wrong(CLIENT_CA, "needs SESSION_TLS_CERT_FILE and SESSION_TLS_KEY_FILE");
        }
        if !insecure && !listen.ip().is_loopback() {
            reader.wrong("SESSION_LISTEN", "is not loopback: set SESSION_TLS_CERT_FILE and SESSION_TLS_KEY_FILE, or SESSION_INSECURE to allow plaintext");
        }
    }
    let (certificate, key) = pair?;
    if client_ca.is_none() && !listen.ip().is_loopback() {
        reader.warn(CLIENT_CA, "is not set: anyone who reaches it may call");
    }
    Some(TlsFiles {
        certificate,
        key,
        client_ca,
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
