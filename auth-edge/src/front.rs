//! What every request passes on its way in, and every answer on its way out: one layer around the whole router.
//!
//! In: an ID, a span, a place, a named host (where providers have their own, the one the browser asked for), a body that may not fall silent. Out: failures as bodies, security headers,
//! the ID, the record, an eye on whether the body is taken. One layer and not one for each, because each would box
//! every request's future anew.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tracing::Instrument as _;

use crate::edge::Edge;
use crate::errors;
use crate::observe::{Metrics, Observed};
use crate::protect::forwarded::TrustedProxies;
use crate::protect::host;
use crate::protect::load::Places;
use crate::protect::security_headers::{self, Https};
use crate::protect::slow_client::{self, Patience};
use crate::protect::slow_reader::{self, Standstill};
use crate::sites;

/// What the layer needs to know.
#[derive(Debug)]
pub struct Front {
    metrics: Metrics,
    places: Places,
    patience: Patience,
    standstill: Standstill,
    https: Https,
    /// Whom to believe about the host, where it matters which it is.
    at_hosts: Option<TrustedProxies>,
}

impl Front {
    /// As the edge's settings say.
    #[must_use]
    pub fn new(edge: &Edge) -> Arc<Self> {
        let settings = &edge.settings;
        Arc::new(Self {
            metrics: edge.metrics.clone(),
            places: Places::new(settings.protection.max_concurrent_requests),
            patience: Patience(settings.protection.body_timeout),
            standstill: Standstill(settings.protection.send_timeout),
            https: Https(settings.https()),
            at_hosts: edge.sites.has_hosts().then(|| edge.trusted_proxies.clone()),
        })
    }
}

/// The layer.
pub async fn layer(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    let observed = Observed::begin(&request);
    let version = request.version();
    let page = errors::wants_page(request.headers());
    let answering = front.admit(request, next).instrument(observed.span());
    let answer = errors::render(answering.await, page, observed.id());
    let answer = security_headers::add(answer, front.https);
    slow_reader::bounded(observed.end(answer, &front.metrics), version, front.standstill)
}

impl Front {
    /// Answers a request that may be worked on.
    async fn admit(&self, mut request: Request, next: Next) -> Response {
        let _place = match self.places.take() {
            Ok(place) => place,
            Err(full) => return full.into_response(),
        };
        if let Err(failure) = host::named(&request) {
            return failure.into_response();
        }
        if let Some(trusted) = &self.at_hosts {
            sites::write_host(&mut request, trusted);
        }
        next.run(slow_client::bounded(request, self.patience)).await
    }
}
