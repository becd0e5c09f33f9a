//! The limits of a listener. Their memory is calculated in `memory_share`.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};

use super::memory_share::{CONNECTIONS_MAX, ListenerRole, MemoryShare};
use crate::metrics::LimitHits;
use crate::readiness::Condition;

/// HTTP/2 streams of a connection between services: one connection carries all calls of a caller.
const CALLS_MAX: u32 = 1_024;

/// HTTP/2 streams of a connection from a caller that opens more connections if necessary, as Envoy does.
const SIDE_CALLS_MAX: u32 = 128;

/// Default limit of all headers of a request, in bytes: several cookies of 4 KiB, and 48 KiB for the rest.
pub(super) const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Default buffer of an HTTP/1.1 connection, in bytes: the headers of a request must fit.
pub(super) const HTTP1_BUFFER_BYTES: usize = HEADER_BYTES_MAX;

/// HTTP/2 streams of a connection that only probes and metrics collectors use.
const PROBES_MAX: u32 = 16;

/// On the admin listener, each client gets this fraction of the connections, so that others find room.
const ADMIN_CLIENTS: usize = 4;

/// Limit of all headers of a request between programs, in bytes.
const SHORT_HEADER_BYTES: usize = 16 * 1024;

/// Unread bytes that a connection with short messages may have sent.
const SHORT_WINDOW_BYTES: u32 = 64 * 1024;

/// The memory of a short request, in bytes: its stream, task, message and answer.
const SHORT_REQUEST_BYTES: usize = 8 * 1024;

/// A short answer is dropped if its client reads nothing for this long.
const SHORT_SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits of a listener.
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
    /// Bytes of an HTTP/1.1 connection's read buffer, and of its write buffer. A request head has to fit.
    pub http1_buffer_bytes: usize,
    /// Unread body bytes that an HTTP/2 connection may have sent; `None` is the library's default.
    pub window_bytes: Option<u32>,
    /// Whether HTTP/2 connections may stay open without requests, as those between services do.
    pub keeps_http2: bool,
    /// How long an HTTP/2 answer may wait for its client to read; `None` means forever.
    pub send_timeout: Option<Duration>,
    /// Bytes that requests in flight and their answers hold, over all connections; `None` is unbounded.
    pub waiting_bytes: Option<usize>,
    /// Bytes that each request counts from its start, in addition to its headers.
    pub request_bytes: usize,
    /// The answer to requests over a connection's share. It has no body, which a client could leave unread.
    pub refusal: fn() -> Response,
    /// Whether a connection over its share ends unread answers, and itself if it keeps sending requests.
    pub ends_over_share: bool,
    /// Unmet while the listener is full and no idle connection can be evicted.
    pub capacity: Option<Condition>,
    /// Counts hits of these limits.
    pub hits: Option<LimitHits>,
}

/// Connections a client may have at once. [`network`] identifies a client.
#[derive(Clone)]
pub struct PerClientLimit {
    /// The limit.
    pub connections: usize,
    /// Which addresses have no limit: proxies, which carry the connections of all clients.
    pub is_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
}

impl Default for Limits {
    /// For authenticated callers: many calls on few connections, which callers keep as long as they like.
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

/// Asks the client to retry as soon as it has read some of the waiting answers.
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

    /// The limits of a secondary listener, in a process with `memory` bytes: short requests between programs,
    /// each counted.
    #[must_use]
    pub fn of_secondary_listener(role: ListenerRole, memory: Option<u64>) -> Self {
        let streams = match role {
            ListenerRole::Admin => PROBES_MAX,
            ListenerRole::Main | ListenerRole::Side => SIDE_CALLS_MAX,
        };
        let share = MemoryShare::of(role, streams, memory);
        Self {
            connections: share.connections,
            // A collector leaves room for probes.
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

/// Identifies a client: an IPv4 address, or the /64 network of an IPv6 address, because one household or
/// machine can use every address in it.
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
