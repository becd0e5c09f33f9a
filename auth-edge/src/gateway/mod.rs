//! What lies behind the edge: the route table, guards, upstreams, forward auth.
//!
//! One road: normalise the path → find the route → guard → folder or server. Invariant: no other road leads to an
//! upstream.

pub mod assertion;
mod challenge;
pub mod check;
mod cross_site;
mod directory;
mod ending;
pub mod explain;
pub mod ext_authz;
mod guard;
pub(crate) mod headers;
mod lacking;
mod missing;
mod proxy;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use chassis::secret::Reloading;
use http_body::Body as _;

use self::assertion::Assertions;
use self::guard::Passed;
use self::proxy::{Proxy, upgrade};
use crate::route_table::{Match, Route, RouteTable, Upstream};
use crate::values::path::RequestPath;
use crate::app::Edge;
use crate::http::errors::Failure;
use crate::http::observe::{Answered, Handle};
use crate::http::request;
use crate::values::return_to::ReturnTo;
use crate::routes::is_reserved;
use crate::settings::UpstreamSettings;

pub use self::lacking::{lacking, undated};
pub use self::proxy::{UpstreamTlsError, certificates};

/// The gateway's own state.
#[derive(Clone)]
pub struct Gateway {
    routes: Reloading<RouteTable>,
    proxy: Proxy,
    assertions: Option<Assertions>,
}

impl Gateway {
    /// A gateway over a table that may be replaced while requests run. Does no IO but reading authorities.
    ///
    /// # Errors
    /// The authorities for upstreams cannot be used.
    pub fn new(
        routes: Reloading<RouteTable>,
        upstreams: &UpstreamSettings,
        assertions: Option<Assertions>,
    ) -> Result<Self, UpstreamTlsError> {
        Ok(Self {
            routes,
            proxy: Proxy::new(upstreams)?,
            assertions,
        })
    }

    /// The route a visitor lands on after sign-in.
    #[must_use]
    pub fn route_of(&self, return_to: &ReturnTo) -> Option<Arc<Route>> {
        let path = RequestPath::parse(return_to.url().path()).ok()?;
        match self.routes.load().find(&path) {
            Match::Route(route) => Some(route),
            Match::Ambiguous | Match::Nothing => None,
        }
    }
}

/// The keys that verify assertions. They are for every upstream's eyes, and caches'.
pub async fn jwks(State(edge): State<Edge>) -> Response {
    let Some(assertions) = &edge.gateway.assertions else {
        return Failure::NotFound.into_response();
    };
    let age = format!("public, max-age={}", assertion::JWKS_MAX_AGE_SECS);
    let kind = HeaderValue::from_static("application/jwk-set+json");
    (
        [(header::CACHE_CONTROL, age)],
        [(header::CONTENT_TYPE, kind)],
        assertions.jwks(),
    )
        .into_response()
}

/// Answers what is none of the edge's own routes.
pub async fn handle(State(edge): State<Edge>, request: Request) -> Response {
    let path = match RequestPath::parse(request.uri().path()) {
        Ok(path) => path,
        Err(_) => return Failure::BadRequest("The path can be read in more than one way.").into_response(),
    };
    // Compared decoded, so that no spelling of our own routes reaches an upstream.
    if is_reserved(path.segments()) {
        return Failure::NotFound.into_response();
    }
    let route = match edge.gateway.routes.load().find(&path) {
        Match::Route(route) => route,
        Match::Ambiguous => {
            return Failure::BadRequest("The path can be read in more than one way.").into_response();
        }
        Match::Nothing => return Failure::NotFound.into_response(),
    };
    let mut response = through(&edge, &route, &path, request).await;
    response.extensions_mut().insert(Answered(route));
    response
}

async fn through(edge: &Edge, route: &Route, path: &RequestPath, request: Request) -> Response {
    let peer = request::peer(request.extensions());
    let Ok(asked) = upgrade::asked(&request) else {
        return Failure::BadRequest("A WebSocket is asked for by GET, without a body.").into_response();
    };
    let parts = guard::Parts {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        peer,
        has_body: !request.body().is_end_stream(),
        asks_for_socket: asked.is_some(),
    };
    let passed = match guard::pass(edge, route, &parts).await {
        Ok(passed) => passed,
        Err(refused) => return refused,
    };
    let response = match &route.upstream {
        Upstream::Directory(folder) => directory::serve(folder, path, route.stripped(), request).await,
        Upstream::Http(server) => {
            let way = proxy::Way {
                edge,
                server,
                route,
                path,
                passed: &passed,
                asked,
            };
            edge.gateway.proxy.forward(&way, request).await
        }
    };
    with_session(edge, response, passed).await
}

/// Adds what the guard learned: the session's name for the log, and the cookie's new expiry where it rolled. What a
/// session has opened ends with it, and is for nobody else: no cache may keep it, whatever the upstream says.
async fn with_session(edge: &Edge, response: Response, passed: Passed) -> Response {
    let Some(current) = passed.current else {
        return response;
    };
    let mut response = response.map(|body| ending::until_ended(body, edge.sessions.streams(), &current));
    headers::forbid_caching(response.headers_mut());
    response
        .headers_mut()
        .append(header::VARY, HeaderValue::from_static("cookie"));
    if let Some(cookie) = edge.sessions.renewed(&current).await {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
        .extensions_mut()
        .insert(Handle(current.session.handle.clone()));
    response
}
