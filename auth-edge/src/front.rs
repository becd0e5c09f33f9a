//! What every request passes on its way in, and every answer on its way out: one layer around the whole router.
//!
//! In: an ID, a span, a place, a named host (where providers have their own, the one the browser asked for), a body that may not fall silent. Out: failures as bodies, security headers,
//! the ID, the record, an eye on whether the body is taken. One layer and not one for each, because each would box
//! every request's future anew.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use prometheus::HistogramVec;
use tower::layer::layer_fn;
use tower::{Layer, Service};
use tracing::Instrument as _;

use crate::edge::Edge;
use crate::errors::{self, Failure};
use crate::observe::Observed;
use crate::protect::forwarded::TrustedProxies;
use crate::protect::host;
use crate::protect::load::{Place, Places};
use crate::protect::redirects;
use crate::protect::security_headers::{self, Https};
use crate::protect::slow_client::{self, Patience};
use crate::protect::slow_reader::{self, Standstill};
use crate::sites::{self, Sites};

/// What the layer needs to know.
#[derive(Debug)]
pub struct Front {
    requests: Arc<HistogramVec>,
    places: Arc<Places>,
    patience: Patience,
    standstill: Standstill,
    https: Https,
    sites: Sites,
    /// Whom to believe about the host, where it matters which it is.
    at_hosts: Option<TrustedProxies>,
}

impl Front {
    /// As the edge's settings say; counts for the scheduler this is called on.
    #[must_use]
    pub fn new(edge: &Edge) -> Arc<Self> {
        let settings = &edge.settings;
        Arc::new(Self {
            requests: edge.metrics.requests(),
            places: Arc::new(edge.places.clone()),
            patience: Patience(settings.protection.body_timeout),
            standstill: Standstill(settings.protection.send_timeout),
            https: Https(settings.https()),
            sites: edge.sites.clone(),
            at_hosts: edge.sites.has_hosts().then(|| edge.trusted_proxies.clone()),
        })
    }
}

/// The layer.
pub fn layer<S>(front: Arc<Front>) -> impl Layer<S, Service = Fronted<S>> + Clone {
    layer_fn(move |inner| Fronted {
        front: Arc::clone(&front),
        inner,
    })
}

/// What lies behind the front.
#[derive(Clone)]
pub struct Fronted<S> {
    front: Arc<Front>,
    inner: S,
}

impl<S> Service<Request> for Fronted<S>
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

    fn call(&mut self, request: Request) -> Self::Future {
        let front = Arc::clone(&self.front);
        let observed = Observed::begin(&request);
        let version = request.version();
        let page = errors::wants_page(request.headers());
        // The request is given away here and not within the answering, which would carry it along.
        let answering = front.admitted(request).map(|(place, request)| {
            let answer = observed.span().in_scope(|| self.inner.call(request));
            (place, answer)
        });
        Box::pin(async move {
            let answer = match answering {
                Ok((_place, answer)) => answer.instrument(observed.span()).await?,
                Err(refused) => refused.into_response(),
            };
            let answer = errors::render(answer, page, observed.id());
            let mut answer = security_headers::add(answer, front.https);
            if answer.status().is_redirection() {
                redirects::end_fragment(answer.headers_mut(), &front.sites);
            }
            let answer = observed.end(answer, &front.requests);
            Ok(slow_reader::bounded(answer, version, front.standstill))
        })
    }
}

impl Front {
    /// A request that may be worked on, and its place until it is answered.
    fn admitted(&self, mut request: Request) -> Result<(Option<Place>, Request), Failure> {
        let place = self.places.take()?;
        host::named(&request)?;
        if let Some(trusted) = &self.at_hosts {
            sites::write_host(&mut request, trusted);
        }
        Ok((place, slow_client::bounded(request, self.patience)))
    }
}
