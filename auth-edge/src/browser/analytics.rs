//! Product analytics on our own origin: forwards batches to one PostHog-compatible server. Off by default.
//!
//! Invariants
//! - The host comes only from the settings.
//! - Only the three addresses that the client library needs exist below [`ANALYTICS_PREFIX`].
//! - Forwarded: the body, its type and the user agent; never a cookie, a credential or the visitor's address.
//! - A slow or hostile analytics server only costs a connection for some seconds.
//! - Each visitor has a share of the batches in flight, so slow bodies leave room for other visitors.
//!
//! The server knows a person only by [`Analytics::pseudonym`].
//!
//! Deliberately absent: retries and queues. The client library has them.

mod pseudonym;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;
use url::Url;

use crate::browser::Browser;
use crate::http::errors::HttpError;
use crate::http::protect::load::{ClientShares, ConcurrencyLimit};
use crate::http::protect::slow_client;
use crate::http::request;
use crate::values::reserved::ANALYTICS_PREFIX;

/// The analytics server and the project there.
#[derive(Clone, Debug)]
pub(crate) struct AnalyticsSettings {
    /// Scheme and host of the server.
    pub(crate) host: Url,
    /// The project's public token; browsers see it.
    pub(crate) token: String,
}

/// The route of the router.
pub(crate) const ROUTE: &str = "/ingest/{*rest}";

/// Largest batch: the client library sends a replay batch at about 1 MB before it is compressed.
const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;

/// Largest answer: the remote configuration is some kilobytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// Limit for receiving a batch, and for the server's answer. No user waits for either.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection takes a millisecond to a neighbour and a quarter of a second across the world.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Batches in flight at once: at most 64 MB of bodies, however many browsers send.
const MAX_IN_FLIGHT: usize = 32;

/// Batches in flight per visitor: a page sends one batch at a time, and a person has a few pages.
const SHARE: ClientShares = ClientShares {
    of_address: 4,
    of_session: 2,
};

/// Request headers that the edge forwards: the type of the body and the user agent.
const PASSED: [header::HeaderName; 3] = [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::USER_AGENT];

/// Answer headers that the edge forwards.
const ANSWERED: [header::HeaderName; 2] = [header::CONTENT_TYPE, header::RETRY_AFTER];

/// Forwards batches if analytics is on.
#[derive(Clone)]
pub(crate) struct Analytics {
    settings: AnalyticsSettings,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    in_flight: ConcurrencyLimit,
}

impl Analytics {
    /// Creates its own connection pool. Does no IO.
    #[must_use]
    pub(crate) fn new(settings: AnalyticsSettings) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(MAX_IN_FLIGHT)
            .build(connector);
        Self {
            settings,
            client,
            in_flight: ConcurrencyLimit::new(MAX_IN_FLIGHT, SHARE),
        }
    }

    /// The URL for a request below the prefix; `None` if its address or method is not forwarded.
    fn target(&self, method: &Method, uri: &Uri) -> Option<Uri> {
        let path = uri.path().strip_prefix(ANALYTICS_PREFIX)?;
        let config = format!("/array/{}/config", self.settings.token);
        let passes = match *method {
            Method::GET => path == config,
            Method::POST => matches!(path, "/e/" | "/s/"),
            _ => false,
        };
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let host = self.settings.host.origin().ascii_serialization();
        passes.then(|| format!("{host}{path}{query}").parse().ok())?
    }

    async fn send(&self, request: http::Request<Full<Bytes>>) -> Result<Response, HttpError> {
        let exchange = async {
            let (head, body) = self
                .client
                .request(request)
                .await
                .map_err(|error| down(&error))?
                .into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES)
                .collect()
                .await
                .map_err(|error| down(&*error))?;
            let mut response = (head.status, body.to_bytes()).into_response();
            *response.headers_mut() = chosen(&head.headers, &ANSWERED);
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Ok(response)
        };
        timeout(TIMEOUT, exchange)
            .await
            .map_err(|_elapsed| HttpError::UpstreamSlow)?
    }
}

/// Forwards a batch or a request for the configuration.
pub(crate) async fn handle(
    State(browser): State<Arc<Browser>>,
    request: Request,
) -> Result<Response, HttpError> {
    let analytics = browser.analytics.as_ref().ok_or(HttpError::NotFound)?;
    let (head, body) = request.into_parts();
    let uri = analytics
        .target(&head.method, &head.uri)
        .ok_or(HttpError::NotFound)?;
    if request::is_cross_site(&head.headers) {
        return Err(HttpError::Csrf);
    }
    // A queue here would only keep bodies in memory: the client library retries.
    let peer = request::peer(&head.extensions);
    let address = browser.trusted_proxies.client_address(peer, &head.headers);
    let session = || browser.cookies.read(&head.headers);
    let _place = analytics
        .in_flight
        .enter(address, session)
        .map_err(|_full| HttpError::UpstreamDown)?;
    let body = timeout(TIMEOUT, to_bytes(body, MAX_BODY_BYTES))
        .await
        .map_err(|_elapsed| HttpError::BadRequest("The body did not arrive in time."))?
        .map_err(|error| slow_client::unread(&error))?;
    let mut passed = http::Request::new(Full::new(body));
    *passed.method_mut() = head.method;
    *passed.uri_mut() = uri;
    *passed.headers_mut() = chosen(&head.headers, &PASSED);
    analytics.send(passed).await
}

fn chosen(headers: &HeaderMap, names: &[header::HeaderName]) -> HeaderMap {
    names
        .iter()
        .filter_map(|name| Some((name.clone(), headers.get(name)?.clone())))
        .collect()
}

fn down(error: &(dyn std::error::Error + 'static)) -> HttpError {
    tracing::warn!(error, "the analytics server cannot be reached");
    HttpError::UpstreamDown
}
