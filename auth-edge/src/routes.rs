//! What the edge answers, top to bottom.
//!
//! Invariants: below `/api/auth/` there are exactly these routes, whatever the route table says; a wrong method
//! touches nothing; every answer has passed the layers at the end. Deliberately absent: any decision.

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};

use crate::edge::Edge;
use crate::errors::{self, Failure};
use crate::protect::host;
use crate::protect::load::{self, Places};
use crate::protect::security_headers::{self, Https};
use crate::protect::slow_client::{self, Patience};
use crate::protect::slow_reader::{self, Standstill};
use crate::sign_in::{back_channel, callback, front_channel, login, logout};
use crate::{access_token, analytics, client_keys, gateway, grpc_web, observe, profile, status};

/// Where all of the edge's own routes lie.
pub const BASE_PATH: &str = "/api/auth";

/// Where the edge publishes what machines look for (RFC 8615).
const WELL_KNOWN_PATH: &str = "/.well-known/vestibule";

/// The edge as a router.
pub fn router(edge: Edge) -> Router {
    let settings = &edge.settings;
    let callback_methods = if settings.form_post() { "POST" } else { "GET" };
    let analytics = match settings.analytics {
        Some(_) => Router::new().route(analytics::ROUTE, any(analytics::handle)),
        None => Router::new(),
    };
    Router::new()
        .route(&settings.login_path, only("GET, HEAD", any(login::handle)))
        .route(
            &settings.callback_path,
            only(callback_methods, any(callback::handle)),
        )
        .route(logout::PATH, only("GET, HEAD, POST", any(logout::handle)))
        .route("/api/auth/me", only("GET, HEAD", any(profile::handle)))
        .route("/api/auth/401", any(status::unauthorized))
        .route("/api/auth/status", only("GET", any(status::handle)))
        .route(
            "/api/auth/access-token",
            if_on(
                settings.access_token_endpoint,
                only("GET", any(access_token::handle)),
            ),
        )
        .route(
            "/api/auth/backchannel-logout",
            only("POST", any(back_channel::handle)),
        )
        .route(
            "/api/auth/frontchannel-logout",
            if_on(
                settings.frontchannel_logout,
                only("GET", any(front_channel::handle)),
            ),
        )
        .route("/api/auth/check", any(gateway::check::handle))
        .route(
            gateway::assertion::JWKS_PATH,
            if_on(
                settings.assertions.is_some(),
                only("GET, HEAD", any(gateway::jwks)),
            ),
        )
        .route(BASE_PATH, any(not_found))
        .route("/api/auth/", any(not_found))
        .route("/api/auth/{*rest}", any(not_found))
        .route(client_keys::PATH, only("GET, HEAD", any(client_keys::handle)))
        .merge(analytics)
        .merge(grpc_web::routes(&edge))
        .fallback(gateway::handle)
        .layer(from_fn_with_state(
            Patience(settings.protection.body_timeout),
            slow_client::layer,
        ))
        .layer(from_fn(host::layer))
        .layer(from_fn_with_state(
            Places::new(settings.protection.max_concurrent_requests),
            load::layer,
        ))
        .layer(from_fn(errors::render))
        .layer(from_fn_with_state(
            Https(settings.https()),
            security_headers::layer,
        ))
        .layer(from_fn_with_state(edge.metrics.clone(), observe::layer))
        .layer(from_fn_with_state(
            Standstill(settings.protection.send_timeout),
            slow_reader::layer,
        ))
        .with_state(edge)
}

/// Lets only these methods through; the others get 405 with `Allow`.
fn only(allowed: &'static str, route: MethodRouter<Edge>) -> MethodRouter<Edge> {
    route.layer(from_fn(move |request: Request, next: Next| async move {
        if allows(allowed, request.method()) {
            next.run(request).await
        } else {
            refuse(allowed)
        }
    }))
}

fn allows(allowed: &str, method: &Method) -> bool {
    allowed.split(", ").any(|name| name == method.as_str())
}

fn refuse(allowed: &'static str) -> Response {
    Failure::MethodNotAllowed(allowed).into_response()
}

/// A route that configuration has switched off is not there at all.
fn if_on(on: bool, route: MethodRouter<Edge>) -> MethodRouter<Edge> {
    if on { route } else { any(not_found) }
}

async fn not_found() -> Failure {
    Failure::NotFound
}

/// Whether a path, decoded and normalised, lies among the edge's own routes, in whatever letter case: the gateway
/// answers 404 to it instead of passing on to an upstream what looks like ours.
#[must_use]
pub fn is_reserved(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [BASE_PATH, WELL_KNOWN_PATH].iter().any(|base| {
        path.strip_prefix(base)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
