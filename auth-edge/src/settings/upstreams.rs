//! Settings of what lies behind the edge, and of how much of it is let through at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chassis::settings::{Reader, Zero};
use chassis::tls;

use super::read::file;
use crate::gateway::UpstreamSettings;
use crate::gateway::assertion::{AssertionKeys, OWN_CLAIMS};
use crate::http::protect::slow_client::BodyTimeouts;
use crate::http::protect::visitors::VisitorShare;
use crate::route_table::RouteTable;
use crate::route_table::file::{self, RouteFileContext};

/// What requests are held to, before anybody looks at them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProtectionSettings {
    /// Connections at once; none follows the memory there is.
    pub(crate) connections: Option<usize>,
    /// The part of all connections one address may have, in percent.
    pub(crate) address_share: usize,
    /// Requests worked on at once, and as many whose body is waited for; 0 is no limit.
    pub(crate) max_concurrent_requests: usize,
    /// Requests of one visitor.
    pub(crate) share: VisitorShare,
    /// How long a client may let us wait within a body.
    pub(crate) body_timeouts: BodyTimeouts,
    /// How long a connection is kept without a request.
    pub(crate) idle_timeout: Duration,
    /// How long an answer may wait for its client to take something of it.
    pub(crate) send_timeout: Duration,
}

/// Keys and claims of assertions.
#[derive(Clone, Debug)]
pub(crate) struct AssertionSettings {
    /// The file of keys, to follow its changes.
    pub(crate) file: PathBuf,
    /// The keys as they were at the start.
    pub(crate) keys: Arc<AssertionKeys>,
    /// Claims of the person that are passed on.
    pub(crate) claims: Vec<String>,
}

pub(super) fn upstreams(reader: &mut Reader<'_>) -> UpstreamSettings {
    let ca = tls::read_authorities(reader, "EDGE_UPSTREAM_CA_FILE");
    let idle = reader.secs("EDGE_UPSTREAM_IDLE_TIMEOUT", Zero::Allowed);
    UpstreamSettings {
        ca,
        connect_timeout: Duration::from_millis(
            reader.millis("EDGE_UPSTREAM_CONNECT_TIMEOUT_MS", Zero::Refused),
        ),
        head_timeout: Duration::from_secs(reader.secs("EDGE_UPSTREAM_TIMEOUT", Zero::Refused)),
        idle_timeout: (idle > 0).then(|| Duration::from_secs(idle)),
        max_body_bytes: u64::try_from(reader.count("EDGE_MAX_BODY_BYTES")).unwrap_or(u64::MAX),
    }
}

pub(super) fn protection(reader: &mut Reader<'_>) -> ProtectionSettings {
    let max_concurrent_requests = reader.count("EDGE_MAX_CONCURRENT_REQUESTS");
    let address_share = percent(reader, "EDGE_ADDRESS_SHARE");
    let session_share = percent(reader, "EDGE_SESSION_SHARE");
    let total = reader.secs("EDGE_BODY_TOTAL_TIMEOUT", Zero::Allowed);
    let connections = reader.count("EDGE_MAX_CONNECTIONS");
    ProtectionSettings {
        connections: (connections > 0).then_some(connections),
        address_share,
        max_concurrent_requests,
        share: VisitorShare {
            of_address: share_of(max_concurrent_requests, address_share),
            of_session: share_of(max_concurrent_requests, session_share),
        },
        body_timeouts: BodyTimeouts {
            silence: Duration::from_secs(reader.secs("EDGE_BODY_TIMEOUT", Zero::Refused)),
            rate: u64::try_from(reader.count("EDGE_BODY_MIN_RATE")).unwrap_or(u64::MAX),
            total: (total > 0).then(|| Duration::from_secs(total)),
        },
        send_timeout: Duration::from_secs(reader.secs("EDGE_SEND_TIMEOUT", Zero::Refused)),
        idle_timeout: Duration::from_secs(reader.secs("EDGE_IDLE_TIMEOUT", Zero::Refused)),
    }
}

fn percent(reader: &mut Reader<'_>, name: &str) -> usize {
    let percent = reader.count(name);
    if !(1..=ALL).contains(&percent) {
        reader.wrong(name, "must be a part of what there is, from 1 to 100 percent");
    }
    percent
}

/// Who may have all of it has no share of their own.
const ALL: usize = 100;

/// So many percent of a count, at least one; of no limit there is no limit.
fn share_of(count: usize, percent: usize) -> u32 {
    if count == 0 || percent == ALL {
        return u32::MAX;
    }
    u32::try_from(count.saturating_mul(percent) / ALL)
        .unwrap_or(u32::MAX)
        .max(1)
}

impl ProtectionSettings {
    /// Connections one address may have, of so many; none where it may have all of them.
    #[must_use]
    pub(crate) fn connections_of_address(&self, connections: usize) -> Option<usize> {
        (self.address_share < ALL).then(|| (connections.saturating_mul(self.address_share) / ALL).max(1))
    }
}

pub(super) fn assertions(reader: &mut Reader<'_>) -> Option<AssertionSettings> {
    const FILE: &str = "EDGE_UPSTREAM_JWT_KEY_FILE";
    const CLAIMS: &str = "EDGE_UPSTREAM_JWT_CLAIMS";
    let claims = reader.list(CLAIMS);
    if let Some(own) = claims.iter().find(|name| OWN_CLAIMS.contains(&name.as_str())) {
        reader.wrong(CLAIMS, format!("must not hold {own}: the edge sets it itself"));
    }
    let file = file(reader, FILE)?;
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            reader.wrong(FILE, format!("cannot be read: {error}"));
            return None;
        }
    };
    match AssertionKeys::from_pem(&text) {
        Ok(keys) => Some(AssertionSettings {
            file,
            keys: Arc::new(keys),
            claims,
        }),
        Err(error) => {
            reader.wrong(FILE, error.to_string());
            None
        }
    }
}

/// The route table; its mistakes are mistakes of the setting.
/// Whether there are keys to sign with is read here, whatever `around` says.
pub(crate) fn routes(reader: &mut Reader<'_>, around: RouteFileContext<'_>) -> RouteTable {
    let Some(path) = reader.path("EDGE_ROUTES") else {
        return RouteTable::default();
    };
    let around = RouteFileContext {
        signs: reader.path("EDGE_UPSTREAM_JWT_KEY_FILE").is_some(),
        ..around
    };
    reader
        .toml_file("EDGE_ROUTES", &path, |text| file::parse(text, around))
        .unwrap_or_default()
}
