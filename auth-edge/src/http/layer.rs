//! One layer around the whole router, for every request and every answer.
//!
//! A request gets an ID, a span, a permit, a checked host and a body deadline. An answer gets its error body,
//! security headers, the end of a redirect's fragment, the ID and the access record. One layer does it all:
//! separate layers would each allocate a boxed future per request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Version, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::Route;
use chassis::audit::Origin;
use http_body::Body as _;
use tower::Service as _;
use tracing::Instrument as _;

use crate::http::errors::{self, HttpError};
use crate::http::observe::Observed;
use crate::http::pages::language::Language;
use crate::http::protect::host;
use crate::http::protect::load::{AdmissionPermit, ConcurrencyLimit, until_sent};
use crate::http::protect::redirects;
use crate::http::protect::security_headers::{self, FromUpstream};
use crate::http::protect::slow_client;
use crate::http::request;
use crate::http::shared::Shared;
use crate::values::reserved::{DEVICE_REFRESH_PATH, DEVICE_REGISTER_PATH};

/// The parts of the layer.
#[derive(Clone)]
pub(crate) struct EdgeLayer {
    /// State that other modules of the edge share.
    pub(crate) shared: Arc<Shared>,
    /// Bounds concurrent requests without a body.
    pub(crate) concurrency: ConcurrencyLimit,
    /// Bounds concurrent requests with a body, so that slow bodies take no places from the others.
    pub(crate) with_body: ConcurrencyLimit,
    /// How long a client may pause within a body.
    pub(crate) body_silence: Duration,
    /// Whether browsers reach the edge over https.
    pub(crate) https: bool,
}

/// Answers a request with the inner service.
pub(crate) async fn answer(
    layer: Arc<EdgeLayer>,
    mut inner: Route,
    mut request: Request,
) -> Result<Response, Infallible> {
    let observed = Observed::begin(&request);
    // No route of the edge's own answers, so the ID may go on to an upstream.
    if observed.route.is_none() {
        request.extensions_mut().insert(observed.id);
    }
    let version = request.version();
    let page = request::wants_page(request.headers()).then(|| Language::of(request.headers()));
    let (visitor, answer) = match layer.admit(request) {
        Ok((AdmissionPermit { permit, visitor }, request)) => {
            let origin = Origin {
                request_id: observed.id,
                caller: None,
                operator: None,
            };
            let answer = observed.span.in_scope(|| inner.call(request));
            let answer = origin.scope(answer.instrument(observed.span.clone())).await?;
            drop(permit);
            (Some(visitor), answer)
        }
        Err(refused) => (None, refused.into_response()),
    };
    if let Some(limit) = answer.extensions().get::<HttpError>().and_then(HttpError::limit) {
        layer.shared.metrics.limits.count(limit.name());
    }
    // An answer over HTTP/2 or from an upstream occupies more than its connection until it is sent.
    let holds = version == Version::HTTP_2 || answer.extensions().get::<FromUpstream>().is_some();
    let visitor = visitor.filter(|_| holds);
    let answer = errors::render(answer, page, &layer.shared.pages, observed.id);
    let mut answer = security_headers::add(answer, layer.https);
    if answer.status().is_redirection() {
        redirects::end_fragment(answer.headers_mut(), &layer.shared.sites);
    }
    let answer = observed.end(answer, &layer.shared.metrics.requests);
    Ok(match visitor {
        Some(visitor) => until_sent(answer, visitor),
        None => answer,
    })
}

impl EdgeLayer {
    /// Admits a request and returns its permits.
    fn admit(&self, mut request: Request) -> Result<(AdmissionPermit, Request), HttpError> {
        let peer = request::peer(request.extensions());
        let address = self
            .shared
            .trusted_proxies
            .client_address(peer, request.headers());
        let session = || self.shared.cookies.read(request.headers());
        let limit = match request.body().is_end_stream() {
            true => &self.concurrency,
            false => &self.with_body,
        };
        let admitted = limit.enter(address, session);
        let admitted = admitted.map_err(|refused| as_browsers_take_it(&request, refused))?;
        host::check_host(&request)?;
        if self.shared.sites.has_hosts() {
            host::write(&mut request, &self.shared.trusted_proxies);
        }
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(admitted.visitor.clone());
        }
        Ok((admitted, slow_client::bounded(request, self.body_silence)))
    }
}

/// The error for this address. Device proof addresses answer 503 instead of 429: some browsers end the binding after
/// a 429.
fn as_browsers_take_it(request: &Request, refused: HttpError) -> HttpError {
    let is_proof = [DEVICE_REGISTER_PATH, DEVICE_REFRESH_PATH].contains(&request.uri().path());
    match refused {
        HttpError::RateLimited { limit, .. } if is_proof => HttpError::Overloaded(limit),
        other => other,
    }
}
