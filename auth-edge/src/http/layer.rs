//! What is done to every request and to every answer: one layer around the whole router.
//!
//! In: an ID, a span, a permit, a named host (where providers have their own, the one the browser requested), a body that
//! has to come. Out: failures as bodies, security headers, the fragment of a redirect, the ID, the record. One layer and not
//! one for each, because each would allocate a boxed future for every request.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Version, header};
use axum::response::{IntoResponse as _, Response};
use chassis::audit::Origin;
use http_body::Body as _;
use tower::layer::layer_fn;
use tower::{Layer, Service};
use tracing::Instrument as _;

use crate::http::errors::{self, HttpError};
use crate::http::observe::{Metrics, Observed};
use crate::http::pages::Pages;
use crate::http::pages::language::Language;
use crate::http::protect::host;
use crate::http::protect::load::{Admitted, ConcurrencyLimit};
use crate::http::protect::redirects;
use crate::http::protect::security_headers::{self, FromUpstream, Https};
use crate::http::protect::slow_client;
use crate::http::request;
use crate::providers::sites::Sites;
use crate::sessions::cookies::SessionCookies;
use crate::values::forwarded::TrustedProxies;
use crate::values::reserved::{DEVICE_REFRESH_PATH, DEVICE_REGISTER_PATH};

/// What the layer is made of.
#[derive(Clone, Debug)]
pub(crate) struct EdgeLayer {
    /// The edge's metrics.
    pub(crate) metrics: Metrics,
    /// Bounds the requests worked on at once.
    pub(crate) concurrency: ConcurrencyLimit,
    /// The session cookie, by which requests are counted.
    pub(crate) cookies: SessionCookies,
    /// Whose `X-Forwarded-*` headers are believed.
    pub(crate) trusted_proxies: TrustedProxies,
    /// How long a client may let us wait within a body.
    pub(crate) body_silence: Duration,
    /// The edge's own pages.
    pub(crate) pages: Pages,
    /// Whether browsers reach the edge by https.
    pub(crate) https: bool,
    /// The addresses browsers know the product by.
    pub(crate) sites: Sites,
}

/// The layer.
pub(crate) fn layer<S>(layer: Arc<EdgeLayer>) -> impl Layer<S, Service = EdgeService<S>> + Clone {
    layer_fn(move |inner| EdgeService {
        layer: Arc::clone(&layer),
        inner,
    })
}

/// What lies behind the layer.
#[derive(Clone)]
pub(crate) struct EdgeService<S> {
    layer: Arc<EdgeLayer>,
    inner: S,
}

impl<S> Service<Request> for EdgeService<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let layer = Arc::clone(&self.layer);
        let observed = Observed::begin(&request);
        if let Some(id) = observed.id_to_pass_on() {
            request.extensions_mut().insert(id);
        }
        let version = request.version();
        let page = errors::wants_page(request.headers()).then(|| Language::of(request.headers()));
        // The request moves into the call here: held by the future below, it would enlarge it.
        let answering = layer.admitted(request).map(|(admitted, request)| {
            let answer = observed.span().in_scope(|| self.inner.call(request));
            (admitted, answer)
        });
        Box::pin(async move {
            let (admitted, answer) = match answering {
                Ok((mut admitted, answer)) => {
                    let origin = Origin {
                        request_id: observed.id(),
                        caller: None,
                    };
                    let answer = origin.scope(answer.instrument(observed.span())).await?;
                    admitted.answered();
                    (Some(admitted), answer)
                }
                Err(refused) => (None, refused.into_response()),
            };
            layer.count_limit(&answer);
            // What holds more than its connection until it is sent: a stream, or an upstream's connection.
            let holds = version == Version::HTTP_2 || answer.extensions().get::<FromUpstream>().is_some();
            let admitted = admitted.filter(|_| holds);
            let answer = errors::render(answer, page, &layer.pages, observed.id());
            let mut answer = security_headers::add(answer, Https(layer.https));
            if answer.status().is_redirection() {
                redirects::end_fragment(answer.headers_mut(), &layer.sites);
            }
            let answer = observed.end(answer, &layer.metrics.requests);
            Ok(match admitted {
                Some(admitted) => admitted.until_sent(answer),
                None => answer,
            })
        })
    }
}

impl EdgeLayer {
    /// Counts the limit that an answer says was hit.
    fn count_limit(&self, answer: &Response) {
        // Most answers are no failures, and looking for one costs more than this.
        if answer.status().as_u16() < 400 {
            return;
        }
        let failure = answer.extensions().get::<HttpError>();
        if let Some(limit) = failure.and_then(HttpError::limit) {
            self.metrics.limits.count(limit.name());
        }
    }

    /// A request that may be worked on, and what counts it until it has ended.
    fn admitted(&self, mut request: Request) -> Result<(Admitted, Request), HttpError> {
        let peer = request::peer(request.extensions());
        let address = self.trusted_proxies.client_address(peer, request.headers());
        let session = || self.cookies.read(request.headers());
        let has_body = !request.body().is_end_stream();
        let admitted = self.concurrency.enter(address, session, has_body);
        let admitted = admitted.map_err(|refused| as_browsers_take_it(&request, refused))?;
        host::named(&request)?;
        if self.sites.has_hosts() {
            host::write(&mut request, &self.trusted_proxies);
        }
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(Arc::new(admitted.again()));
        }
        let arrival = admitted.arrival();
        Ok((
            admitted,
            slow_client::bounded(request, self.body_silence, arrival),
        ))
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
