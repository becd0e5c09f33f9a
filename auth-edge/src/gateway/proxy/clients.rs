//! Connections to upstreams, pooled and shared by the requests of one worker.
//!
//! A server behind `https` negotiates HTTP/2 by ALPN; `h2c` always means HTTP/2, and `http` means HTTP/1.1.
//! Protocol switches (WebSocket) always use HTTP/1.1 and a connection of their own: no other request follows
//! on it, whether or not the server switched.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, Response, header};
use chassis::tls::{self, PemError};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client as PooledClient, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

use super::patient_stream::{PatientConnector, patient};
use crate::route_table::Server;

/// An upstream's answer.
pub(super) type UpstreamResponse = Response<Incoming>;

/// Settings of the connections to upstreams.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamSettings {
    /// A file of certificate authorities for upstreams, besides the public ones.
    pub(crate) ca: Option<PathBuf>,
    /// Time until an answer's head, counted from the last byte of the request.
    pub(crate) head_timeout: Duration,
    /// The largest request body in bytes, if the route sets no limit; 0 means no limit.
    pub(crate) max_body_bytes: u64,
}

/// Limit to connect to an upstream: a lost SYN is repeated after one second, and again two seconds later (RFC
/// 6298, section 2).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Idle connections per upstream and worker.
const IDLE_MAX: usize = 64;

/// Bytes of a connection's read buffer, and of its write buffer. The head of an answer has to fit.
const BUFFER_BYTES: usize = 32 * 1024;

/// Most unread bytes of an HTTP/2 answer: allows 2.5 MB/s over a round trip of 100 ms.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// Most unread bytes of all answers of one connection.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// The edge closes idle connections before the upstream does. So it sends no request on a closed connection: a
/// request with a body cannot be sent again. Servers wait at least five seconds (Node.js and Apache by default).
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The kernel's probes detect a vanished peer, also below a silent stream.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// How often an HTTP/2 connection with open requests is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// An HTTP/2 connection without an answer to a ping for this long is dead.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) type Client = PooledClient<HttpsConnector<PatientConnector>, Body>;

/// TLS towards upstreams cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamTlsError {
    /// The file of authorities is unusable.
    #[error("EDGE_UPSTREAM_CA_FILE cannot be used")]
    Authorities(#[source] PemError),
    /// The TLS library failed.
    #[error("TLS towards upstreams cannot be set up")]
    Tls(#[from] rustls::Error),
}

/// The clients of one worker: one for each protocol.
pub(super) struct Clients {
    connector: PatientConnector,
    /// Clones share the TLS sessions, for resumption.
    tls: ClientConfig,
    http1: Client,
    switching: Client,
    negotiated: Client,
    http2: Client,
}

impl Clients {
    /// Clients without connections. Does no IO except reading the authorities.
    pub(super) fn new(settings: &UpstreamSettings) -> Result<Self, UpstreamTlsError> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_keepalive(Some(TCP_KEEPALIVE));
        connector.set_nodelay(true);
        // An upstream that does not read a request or a WebSocket counts as unresponsive.
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(settings.head_timeout));
        connector.enforce_http(false);
        Ok(Self::over(
            patient(connector),
            tls_config(settings.ca.as_deref())?,
        ))
    }

    /// A copy with its own connections.
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

    /// Sends a request of the edge itself.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<UpstreamResponse, ClientError> {
        self.negotiated.request(request).await
    }

    /// The client for a server. An HTTP/1.1-only client leaves the `Host` header to the caller. HTTP/1.1 is
    /// also used if `Host` differs from the address: over HTTP/2 the two are one (RFC 9113, section 8.3.1).
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
        // The edge removes these spaces and line folds, as a proxy has to (RFC 9112, sections 5.1 and 5.2).
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
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
