//! Product analytics on our own origin: passed on to one PostHog-compatible server, off by default.
//!
//! Invariants
//! - The host comes from the settings alone.
//! - Only the three addresses the client library needs exist below [`ANALYTICS_PREFIX`].
//! - What passes is the body, its type and the browser's name, never a cookie, a credential or the visitor's address.
//! - Everything is bounded, so that a slow or hostile analytics server costs a connection for some seconds and nothing else.
//! - A visitor has a share of the batches in flight: slow bodies of one visitor leave room for the others'.
//!
//! A person is known to it only by [`Analytics::pseudonym`].
//!
//! Deliberately absent: retries and queues, which the client library has.

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
use crate::http::protect::load::{ConcurrencyLimit, VisitorShare};
use crate::http::protect::slow_client;
use crate::http::request;
use crate::values::reserved::ANALYTICS_PREFIX;

/// Where analytics goes, and for which project.
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

/// Time for a batch to arrive, and again for the server to answer: nobody waits for either.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connecting takes a millisecond to a neighbour and a quarter of a second across the world.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Batches in flight at once: at most 64 MB of bodies, however many browsers send.
const MAX_IN_FLIGHT: usize = 32;

/// How many of them one visitor may have: a page sends one batch at a time, and a person has a few pages.
const SHARE: VisitorShare = VisitorShare {
    of_address: 4,
    of_session: 2,
};

/// Request headers that pass: what the body is, and what the browser calls itself.
const PASSED: [header::HeaderName; 3] = [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::USER_AGENT];

/// Answer headers that pass.
const ANSWERED: [header::HeaderName; 2] = [header::CONTENT_TYPE, header::RETRY_AFTER];

/// Passes batches on, when analytics is on.
#[derive(Clone)]
pub(crate) struct Analytics {
    settings: AnalyticsSettings,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    in_flight: ConcurrencyLimit,
}

impl Analytics {
    /// With connections of its own. Does no IO.
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

    /// Where a request below the prefix leads; nothing for an address or a method that does not pass.
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

/// Passes a batch, or the question for the configuration, on.
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
    // A queue here would only keep bodies in memory: the client library tries again.
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
