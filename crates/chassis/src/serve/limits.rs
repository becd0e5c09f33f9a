//! How much a listener accepts, and of whom.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use crate::readiness::Condition;

/// Connections at once where nobody says otherwise: below what descriptors allow in a cluster.
pub(crate) const CONNECTIONS_MAX: usize = 16_384;

/// What a connection takes at most while nothing happens on it, in bytes: its socket's and its TLS buffers, its task, and the table of
/// fields of HTTP/2. Reckoned from their sizes, not measured.
const CONNECTION_BYTES: u64 = 32 * 1024;

/// Half of the memory is for what is done over the connections.
const SHARE_OF_MEMORY: u64 = 2;

/// Fewer connections than this serve nobody, however little memory there is.
const CONNECTIONS_MIN: usize = 256;

/// Streams of one HTTP/2 connection at once where services call: one connection carries all calls of a caller.
const CALLS_MAX: u32 = 1_024;

/// All headers of a request together where nobody says otherwise, in bytes: several cookies of 4 KiB and 48 KiB for the rest.
pub(super) const HEADER_BYTES_MAX: usize = 64 * 1024;

/// A connection kept without a request for longer is closed; what most servers grant.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// What a listener accepts.
#[derive(Clone)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections of one client at once.
    pub per_client: Option<PerClientLimit>,
    /// Streams of an HTTP/2 connection at once.
    pub streams: u32,
    /// All headers of one HTTP/2 request together, in bytes as RFC 9113, section 6.5.2, counts them.
    pub header_list_bytes: usize,
    /// Headers of all open requests of an HTTP/2 connection together, in bytes.
    pub open_header_bytes: usize,
    /// Bytes of bodies that an HTTP/2 connection may have sent and nobody has read; the library's default where none.
    pub window_bytes: Option<u32>,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// Whether HTTP/2 connections are kept without a request for as long as their client likes, as services keep theirs.
    pub keeps_http2: bool,
    /// How long the answer of an HTTP/2 stream may wait for its client to read; for ever where none.
    pub send_timeout: Option<Duration>,
    /// What is kept for clients that do not read it, all connections together, in bytes; unbounded where none.
    pub waiting_bytes: Option<usize>,
    /// Unmet while the listener is full and no idle connection can be evicted.
    pub capacity: Option<Condition>,
}

/// Connections one client may have at once. [`network`] identifies a client.
#[derive(Clone)]
pub struct PerClientLimit {
    /// How many.
    pub connections: usize,
    /// Who may have as many as there are: proxies, behind which everybody is.
    pub is_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
}

impl fmt::Debug for PerClientLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PerClientLimit({})", self.connections)
    }
}

impl Default for Limits {
    /// For authenticated callers: many calls on few connections, kept as long as the callers like.
    fn default() -> Self {
        Self {
            connections: CONNECTIONS_MAX,
            per_client: None,
            streams: CALLS_MAX,
            header_list_bytes: HEADER_BYTES_MAX,
            open_header_bytes: usize::MAX,
            window_bytes: None,
            idle: IDLE_TIMEOUT,
            keeps_http2: true,
            send_timeout: None,
            waiting_bytes: None,
            capacity: None,
        }
    }
}

/// How many connections fit into a process that may have `memory` bytes, if that is limited at all.
#[must_use]
pub fn connections_within(memory: Option<u64>) -> usize {
    let Some(memory) = memory else {
        return CONNECTIONS_MAX;
    };
    usize::try_from(memory / SHARE_OF_MEMORY / CONNECTION_BYTES)
        .unwrap_or(CONNECTIONS_MAX)
        .clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// What identifies a client: an IPv4 address, or the /64 network of an IPv6 address, since one household or machine has all of it to
/// pick addresses from.
#[must_use]
pub fn network(address: IpAddr) -> Ipv6Addr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_follow_the_memory_there_is() {
        assert_eq!(connections_within(None), CONNECTIONS_MAX);
        assert_eq!(connections_within(Some(128 << 20)), 2_048);
        assert_eq!(connections_within(Some(1 << 20)), CONNECTIONS_MIN);
        assert_eq!(connections_within(Some(u64::MAX)), CONNECTIONS_MAX);
    }

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
