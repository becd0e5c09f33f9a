//! How much a listener accepts, and of whom. How much memory that may take is in `memory_share`.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};

use super::memory_share::{CONNECTIONS_MAX, ListenerRole, MemoryShare};
use crate::metrics::LimitHits;
use crate::readiness::Condition;

/// Streams of one HTTP/2 connection at once where services call: one connection carries all calls of a caller.
const CALLS_MAX: u32 = 1_024;

/// The same where whoever needs more opens another connection, as Envoy does.
const SIDE_CALLS_MAX: u32 = 128;

/// All headers of a request together where nobody says otherwise, in bytes: several cookies of 4 KiB and 48 KiB for the rest.
pub(super) const HEADER_BYTES_MAX: usize = 64 * 1024;

/// A buffer of HTTP/1.1 where nobody says otherwise, in bytes: as large as the headers of a request may be.
pub(super) const HTTP1_BUFFER_BYTES: usize = HEADER_BYTES_MAX;

/// Streams of one HTTP/2 connection at once where only probes and collectors of metrics ask.
const PROBES_MAX: u32 = 16;

/// At the admin listener one client has so many'th of the connections: beside it there are other collectors, and probes.
const ADMIN_CLIENTS: usize = 4;

/// All headers of a request of a program, in bytes.
const SHORT_HEADER_BYTES: usize = 16 * 1024;

/// Bytes of short messages that a connection may have sent and nobody has read.
const SHORT_WINDOW_BYTES: u32 = 64 * 1024;

/// What a short request takes: its stream, its task, its message and its answer, in bytes.
const SHORT_REQUEST_BYTES: usize = 8 * 1024;

/// A short answer of which its client takes nothing for so long is given up.
const SHORT_SEND_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// Bytes that an HTTP/1.1 connection reads ahead, and again that it writes behind. The head of a request has to fit.
    pub http1_buffer_bytes: usize,
    /// Bytes of bodies that an HTTP/2 connection may have sent and nobody has read; the library's default where none.
    pub window_bytes: Option<u32>,
    /// Whether HTTP/2 connections are kept without a request for as long as their client likes, as services keep theirs.
    pub keeps_http2: bool,
    /// How long the answer of an HTTP/2 stream may wait for its client to read; for ever where none.
    pub send_timeout: Option<Duration>,
    /// What requests in flight and their answers hold, all connections together, in bytes; unbounded where none.
    pub waiting_bytes: Option<usize>,
    /// What a request is counted with besides its headers, before anybody looks at it, in bytes.
    pub request_bytes: usize,
    /// What a request is answered whose connection is over its share: nothing that has a body, which a client could leave unread.
    pub refusal: fn() -> Response,
    /// Whether a connection over its share is also to end answers that its client does not take, and itself where it goes on asking.
    pub ends_over_share: bool,
    /// Unmet while the listener is full and no idle connection can be evicted.
    pub capacity: Option<Condition>,
    /// Counts hits of these limits.
    pub hits: Option<LimitHits>,
}

/// Connections one client may have at once. [`network`] identifies a client.
#[derive(Clone)]
pub struct PerClientLimit {
    /// How many.
    pub connections: usize,
    /// Who may have as many as there are: proxies, behind which everybody is.
    pub is_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
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
            http1_buffer_bytes: HTTP1_BUFFER_BYTES,
            window_bytes: None,
            keeps_http2: true,
            send_timeout: None,
            waiting_bytes: None,
            request_bytes: 0,
            refusal: unavailable,
            ends_over_share: false,
            capacity: None,
            hits: None,
        }
    }
}

/// To be tried again as soon as some of what the connection holds is read.
#[must_use]
pub fn unavailable() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")]).into_response()
}

impl Limits {
    /// Counts a hit of one of these limits.
    pub(super) fn hit(&self, limit: &'static str) {
        if let Some(hits) = &self.hits {
            hits.count(limit);
        }
    }

    /// Of a listener that is not what the service is there for, in a process that may have `memory` bytes: short requests of programs, of
    /// which each is counted.
    #[must_use]
    pub fn beside(role: ListenerRole, memory: Option<u64>) -> Self {
        let streams = match role {
            ListenerRole::Admin => PROBES_MAX,
            ListenerRole::Main | ListenerRole::Side => SIDE_CALLS_MAX,
        };
        let share = MemoryShare::of(role, streams, memory);
        Self {
            connections: share.connections,
            // Whoever collects metrics leaves room for probes.
            per_client: (role == ListenerRole::Admin).then(|| PerClientLimit {
                connections: share.connections / ADMIN_CLIENTS,
                is_proxy: Arc::new(|_| false),
            }),
            streams,
            header_list_bytes: SHORT_HEADER_BYTES,
            http1_buffer_bytes: SHORT_HEADER_BYTES,
            window_bytes: Some(SHORT_WINDOW_BYTES),
            keeps_http2: role != ListenerRole::Admin,
            send_timeout: Some(SHORT_SEND_TIMEOUT),
            waiting_bytes: Some(share.waiting_bytes),
            request_bytes: SHORT_REQUEST_BYTES,
            ends_over_share: true,
            ..Self::default()
        }
    }
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
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
