//! Connections to upstreams, kept and shared by the requests of one worker.
//!
//! A server behind `https` says by ALPN whether it speaks HTTP/2; one behind `h2c` is known to; one behind `http` speaks
//! HTTP/1.1. Protocols that switch (WebSocket) need HTTP/1.1 whatever else the server speaks, and a connection of their own:
//! whether or not the server has switched, nobody else's request follows on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use chassis::tls::{self, PemError};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client as PooledClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

use super::patient_stream::{PatientConnector, patient};
use crate::route_table::Server;

/// An upstream's answer.
pub(super) type UpstreamResponse = Response<Incoming>;

/// How requests are passed on.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamSettings {
    /// Authorities that certificates of upstreams may come from besides the public ones.
    pub(crate) ca: Option<PathBuf>,
    /// Time until an answer's head, counted from the last byte of the request.
    pub(crate) head_timeout: Duration,
    /// The largest request body in bytes, where the route says nothing; 0 is no limit.
    pub(crate) max_body_bytes: u64,
}

/// A connection to an upstream has to stand within this: a lost SYN is repeated after one second, and once more two seconds later
/// (RFC 6298, section 2).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Idle connections kept for each upstream, by each worker.
const IDLE_MAX: usize = 64;

/// Bytes that a connection to an upstream reads ahead of a slow client, and again that it writes behind; the head of an answer has to fit.
const BUFFER_BYTES: usize = 32 * 1024;

/// Bytes of an answer over HTTP/2 that its client has not taken: 2.5 MB/s over a round trip of 100 ms.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same of all answers of one connection.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// An idle connection is closed before the upstream closes it, so that no request meets a closed one: one with a body cannot be
/// sent again. Servers wait no less than five seconds (Node.js and Apache by default).
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// A peer that has vanished without a word is noticed by the kernel's probes, also below a stream that may be silent.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// An HTTP/2 connection with requests on it is pinged this often.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// An HTTP/2 connection that does not answer for so long is dead.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) type Client = PooledClient<HttpsConnector<PatientConnector>, Body>;

/// TLS towards upstreams cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamTlsError {
    /// The file of authorities.
    #[error("EDGE_UPSTREAM_CA_FILE cannot be used")]
    Authorities(#[source] PemError),
    /// The TLS library.
    #[error("TLS towards upstreams cannot be set up")]
    Tls(#[from] rustls::Error),
}

/// The clients of one worker: one for each protocol.
pub(super) struct Clients {
    connector: PatientConnector,
    /// Clones share the TLS sessions that may be resumed.
    tls: ClientConfig,
    http1: Client,
    switching: Client,
    negotiated: Client,
    http2: Client,
}

impl Clients {
    /// Clients without connections. Does no IO but reading the authorities.
    pub(super) fn new(settings: &UpstreamSettings) -> Result<Self, UpstreamTlsError> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_keepalive(Some(TCP_KEEPALIVE));
        connector.set_nodelay(true);
        // An upstream that takes nothing of a request or of a WebSocket is as good as one that does not answer.
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(settings.head_timeout));
        connector.enforce_http(false);
        Ok(Self::over(
            patient(connector),
            tls_config(settings.ca.as_deref())?,
        ))
    }

    /// The same with connections of their own.
    pub(super) fn for_worker(&self) -> Self {
        Self::over(self.connector.clone(), self.tls.clone())
    }

    fn over(connector: PatientConnector, tls: ClientConfig) -> Self {
        let https = || {
            HttpsConnectorBuilder::new()
                .with_tls_config(tls.clone())
                .https_or_http()
        };
        let http1 = https().enable_http1().wrap_connector(connector.clone());
        let any = https().enable_all_versions().wrap_connector(connector.clone());
        let http2 = https().enable_http2().wrap_connector(connector.clone());
        Self {
            negotiated: client().build(any),
            http2: client().http2_only(true).build(http2),
            switching: client()
                .set_host(false)
                .pool_max_idle_per_host(0)
                .build(http1.clone()),
            http1: client().set_host(false).build(http1),
            connector,
            tls,
        }
    }

    /// The client for a server. HTTP/1.1 names the host among the headers, which a client that only speaks that leaves to
    /// us; it is spoken where another host is named than that of the address, for over HTTP/2 the two are one (RFC 9113,
    /// section 8.3.1).
    pub(super) fn speaking_to(&self, server: &Server, switches: bool, headers: &mut HeaderMap) -> &Client {
        let by_address = !switches && !headers.contains_key(header::HOST);
        match server.url.scheme() {
            "https" if by_address => &self.negotiated,
            _ if server.prior_knowledge && by_address => &self.http2,
            _ => {
                if let Ok(host) = HeaderValue::from_str(server.authority()) {
                    headers.entry(header::HOST).or_insert(host);
                }
                if switches { &self.switching } else { &self.http1 }
            }
        }
    }
}

fn client() -> Builder {
    let mut builder = PooledClient::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http1_max_buf_size(BUFFER_BYTES)
        // Both are taken out, as a proxy has to (RFC 9112, sections 5.1 and 5.2).
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_send_buf_size(BUFFER_BYTES)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_MAX)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT);
    builder
}

fn tls_config(ca: Option<&Path>) -> Result<ClientConfig, UpstreamTlsError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(ca) = ca {
        let own = tls::authorities(ca).map_err(UpstreamTlsError::Authorities)?;
        roots.roots.extend(own.roots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
