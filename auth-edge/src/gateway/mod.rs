//! The guarded side of the edge: guards, upstreams, folders, forward auth.
//!
//! Each request: normalise the path → find the route → guard → folder or server. Invariants: no other way
//! leads to an upstream. One host chooses the rule, the session's site, and the upstream's `Host`.

pub(crate) mod assertion;
mod authorized;
pub(crate) mod bearer;
mod challenge;
pub(crate) mod check;
pub(crate) mod claim_headers;
mod cross_site;
pub(crate) mod decision;
mod directory;
mod ending;
pub mod ext_authz;
mod guard;
pub(crate) mod headers;
mod identity_headers;
mod proxy;
mod refusal;
mod state;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use http_body::Body as _;

use self::authorized::{RequestCredentials, RequestHead};
use self::proxy::upgrade;
use crate::http::errors::HttpError;
use crate::http::observe::AnsweringRoute;
use crate::kept_form;
use crate::route_table::{Guard, Match, Route, RouteQuery, Upstream};
use crate::values::path::RequestPath;
use crate::values::reserved::is_reserved;

pub(crate) use self::proxy::{Proxy, UpstreamDurations, UpstreamSettings, UpstreamTlsError};
pub(crate) use self::state::Gateway;

/// The keys that verify assertions. Public: every upstream may read them, and caches may store them.
pub(crate) async fn jwks(State(gateway): State<Arc<Gateway>>) -> Response {
    let Some(assertions) = &gateway.assertions else {
        return HttpError::NotFound.into_response();
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

/// Answers requests for paths outside the edge's own routes.
pub(crate) async fn handle(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let path = match RequestPath::read(request.uri().path()) {
        Ok(path) => path,
        Err(_) => {
            return HttpError::BadRequest("The path can be read in more than one way.").into_response();
        }
    };
    // Compares decoded paths, so that no spelling of our own routes reaches an upstream.
    if path.readings().any(is_reserved) {
        return HttpError::NotFound.into_response();
    }
    let requested = RouteQuery {
        host: gateway.sites.of(request.headers()).host(),
        method: request.method(),
        path: &path,
    };
    let route = match gateway.routes.with(|table| table.routes.find(requested)) {
        Match::Route(route) => route,
        Match::OtherMethods(methods) => {
            let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
            return HttpError::MethodNotAllowed(names.join(", ").into()).into_response();
        }
        Match::Ambiguous => {
            return HttpError::BadRequest("The path can be read in more than one way.").into_response();
        }
        Match::Nothing => return HttpError::NotFound.into_response(),
    };
    let readable = bearer::other_origins_may_read(&gateway, &route, request.headers());
    let mut response = through(&gateway, &route, &path, request).await;
    if readable && response.extensions().get::<HttpError>().is_some() {
        bearer::let_other_origins_read(&mut response);
    }
    response
        .extensions_mut()
        .insert(AnsweringRoute(route.name.clone()));
    response
}

async fn through(gateway: &Gateway, route: &Route, path: &RequestPath, request: Request) -> Response {
    let is_websocket = match upgrade::is_handshake(&request) {
        Ok(is_websocket) => is_websocket,
        Err(malformed) => return malformed.into_response(),
    };
    let (head, body) = request.into_parts();
    let asking = RequestHead {
        parts: &head,
        has_body: !body.is_end_stream(),
        is_websocket,
    };
    let authorized = match guard::authorize(gateway, route, &asking).await {
        Ok(authorized) => authorized,
        Err(refused) if kept_form::is_marked(&refused) => {
            let request = Request::from_parts(head, body);
            return Box::pin(gateway.kept_forms.keep(request, refused)).await;
        }
        Err(refused) => return refused,
    };
    let is_page = route.table.keeps_forms && route.guard == Guard::Page && head.method == Method::GET;
    let reader = authorized.current.as_ref().filter(|_| is_page);
    let person = reader.and_then(|reader| gateway.kept_forms.remember(&head.headers, &reader.session));
    let response = match &route.upstream {
        Upstream::Directory(folder) => directory::serve(folder, path, route.stripped(), head).await,
        Upstream::Http(server) => {
            let outgoing = proxy::OutgoingRequest {
                gateway,
                server,
                route,
                path,
                authorized: &authorized,
                is_websocket,
                head,
            };
            gateway.proxy.forward(outgoing, body).await
        }
        // The other proxy forwards these requests itself; the edge does not serve them.
        Upstream::OtherProxy => HttpError::NotFound.into_response(),
    };
    let (streams, session) = (&gateway.sessions.streams, authorized.current.as_ref());
    let response = ending::until_ended(response, streams, session, &gateway.stopping.overdue);
    with_session(gateway, response, authorized, person).await
}

/// Adds the guard's result: the session's name for the log, and the renewed cookie if the session rolled. No cache
/// may store the answer, regardless of the upstream's headers. Adds the `person` cookie unless the user signed out
/// meanwhile.
async fn with_session(
    gateway: &Gateway,
    mut response: Response,
    authorized: RequestCredentials,
    person: Option<HeaderValue>,
) -> Response {
    authorized.name_in(&mut response);
    if authorized.bearer.is_some() {
        forbid_sharing(&mut response, "authorization");
    }
    if let Some(current) = authorized.current {
        forbid_sharing(&mut response, "cookie");
        for cookie in gateway.sessions.cookies_if_alive(&current, person).await {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    response
}

/// Forbids caching, and sharing with requests that send another value of this header.
fn forbid_sharing(response: &mut Response, by: &'static str) {
    headers::forbid_caching(response.headers_mut());
    response
        .headers_mut()
        .append(header::VARY, HeaderValue::from_static(by));
}
