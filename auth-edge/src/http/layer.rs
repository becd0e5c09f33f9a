//! What is done to every request and to every answer: one layer around the whole router.
//!
//! In: an ID, a span, a permit, a named host (where providers have their own, the one the browser requested), a body that
//! has to come. Out: failures as bodies, security headers, the fragment of a redirect, the ID, the record. One layer and not
//! one for each, because each would allocate a boxed future for every request.

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
use crate::http::protect::load::{Admitted, ConcurrencyLimit, until_sent};
use crate::http::protect::redirects;
use crate::http::protect::security_headers::{self, FromUpstream};
use crate::http::protect::slow_client;
use crate::http::request;
use crate::http::shared::Shared;
use crate::values::reserved::{DEVICE_REFRESH_PATH, DEVICE_REGISTER_PATH};

/// What the layer is made of.
#[derive(Clone)]
pub(crate) struct EdgeLayer {
    /// What other rooms use too.
    pub(crate) shared: Arc<Shared>,
    /// Bounds the requests without a body that are worked on at once.
    pub(crate) concurrency: ConcurrencyLimit,
    /// The same for requests with one: bodies that come slowly take no place of the others.
    pub(crate) with_body: ConcurrencyLimit,
    /// How long a client may let us wait within a body.
    pub(crate) body_silence: Duration,
    /// Whether browsers reach the edge by https.
    pub(crate) https: bool,
}

/// Answers a request by what lies behind the layer.
pub(crate) async fn answer(
    layer: Arc<EdgeLayer>,
    mut inner: Route,
    mut request: Request,
) -> Result<Response, Infallible> {
    let observed = Observed::begin(&request);
    // No route of our own answers: the ID is passed on.
    if observed.route.is_none() {
        request.extensions_mut().insert(observed.id);
    }
    let version = request.version();
    let page = request::wants_page(request.headers()).then(|| Language::of(request.headers()));
    let (visitor, answer) = match layer.admitted(request) {
        Ok((Admitted { permit, visitor }, request)) => {
            let origin = Origin {
                request_id: observed.id,
                caller: None,
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
    // What holds more than its connection until it is sent: a stream, or an upstream's connection.
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
    /// A request that may be worked on, and what counts it.
    fn admitted(&self, mut request: Request) -> Result<(Admitted, Request), HttpError> {
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
        host::named(&request)?;
        if self.shared.sites.has_hosts() {
            host::write(&mut request, &self.shared.trusted_proxies);
        }
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(admitted.visitor.clone());
        }
        Ok((admitted, slow_client::bounded(request, self.body_silence)))
    }
}

/// A refusal as the request's address has to word it: where browsers prove the device of a session, 429 would end the binding in some of them, and 503
/// never does.
fn as_browsers_take_it(request: &Request, refused: HttpError) -> HttpError {
    let is_proof = [DEVICE_REGISTER_PATH, DEVICE_REFRESH_PATH].contains(&request.uri().path());
    match refused {
        HttpError::RateLimited { limit, .. } if is_proof => HttpError::Overloaded(limit),
        other => other,
    }
}
