//! What lies behind the edge: the route table, guards, upstreams, forward auth.
//!
//! One road: normalise the path → find the route → guard → folder or server. Invariant: no other road leads to an
//! upstream.

pub mod check;
mod directory;
mod guard;
mod headers;
pub mod path;
mod proxy;
pub mod route_file;
pub mod route_table;
mod upgrade;
mod upload;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use chassis::secret::Reloading;

use self::guard::Passed;
use self::path::RequestPath;
use self::proxy::Proxy;
use self::route_table::{Match, Route, RouteTable, Upstream};
use crate::edge::Edge;
use crate::errors::Failure;
use crate::observe::{Handle, RouteName};
use crate::request;
use crate::routes::is_reserved;

/// The gateway's own state.
#[derive(Clone)]
pub struct Gateway {
    routes: Reloading<RouteTable>,
    proxy: Proxy,
}

impl Gateway {
    /// A gateway over a table that may be replaced while requests run. Does no IO.
    #[must_use]
    pub fn new(routes: Reloading<RouteTable>) -> Self {
        Self {
            routes,
            proxy: Proxy::new(),
        }
    }
}

/// Answers what is none of the edge's own routes.
pub async fn handle(State(edge): State<Edge>, request: Request) -> Response {
    let path = match RequestPath::parse(request.uri().path()) {
        Ok(path) => path,
        Err(_) => return Failure::BadRequest("The path can be read in more than one way.").into_response(),
    };
    // Compared decoded, so that no spelling of our own routes reaches an upstream.
    if is_reserved(&format!("/{}", path.segments().join("/"))) {
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
    response
        .extensions_mut()
        .insert(RouteName(Arc::clone(&route.name)));
    response
}

async fn through(edge: &Edge, route: &Route, path: &RequestPath, request: Request) -> Response {
    let peer = request::peer(request.extensions());
    let parts = guard::Parts {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        peer,
    };
    let passed = match guard::pass(edge, route, &parts).await {
        Ok(passed) => passed,
        Err(refused) => return refused,
    };
    let response = match &route.upstream {
        Upstream::Directory(folder) => directory::serve(folder, path, route.stripped(), request).await,
        Upstream::Http(server) => {
            edge.gateway
                .proxy
                .forward(edge, server, route, path, &passed, request)
                .await
        }
    };
    with_session(response, passed)
}

/// Adds what the guard learned: the session's name for the log, and the cookie's new expiry where it rolled. What a
/// session has opened is for nobody else: no cache may keep it, whatever the upstream says.
fn with_session(mut response: Response, passed: Passed) -> Response {
    let Some(current) = passed.current else {
        return response;
    };
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
        .headers_mut()
        .append(header::VARY, HeaderValue::from_static("cookie"));
    if let Some(cookie) = current.set_cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response.extensions_mut().insert(Handle(current.session.handle));
    response
}
