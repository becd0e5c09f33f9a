//! What the edge answers, top to bottom.
//!
//! Invariants: below `/api/auth/` there are exactly these routes, whatever the route table says; a wrong method
//! touches nothing; every answer has passed the layers at the end. Deliberately absent: any decision.

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, any, on};
use oidc::ResponseMode;

use crate::app::Edge;
use crate::http::errors::Failure;
use crate::http::layer::{self, Front};
use crate::sign_in::{back_channel, callback, front_channel, login, logout};
use crate::browser::{access_token, analytics, client_keys, grpc_web, profile, status};
use crate::gateway;

/// Where all of the edge's own routes lie.
pub const BASE_PATH: &str = "/api/auth";

/// Where the edge publishes what machines look for (RFC 8615).
const WELL_KNOWN_PATH: &str = "/.well-known/vestibule";

/// Routes that stay where they are, whatever the settings say.
const FIXED: [&str; 9] = [
    BASE_PATH,
    logout::PATH,
    "/api/auth/me",
    "/api/auth/401",
    "/api/auth/status",
    "/api/auth/access-token",
    "/api/auth/backchannel-logout",
    "/api/auth/frontchannel-logout",
    gateway::check::PATH,
];

/// Below these everything is taken.
const TAKEN_BELOW: [&str; 3] = [WELL_KNOWN_PATH, grpc_web::PREFIX, analytics::PREFIX];

/// The edge as a router.
pub fn router(edge: Edge) -> Router {
    let settings = &edge.settings;
    let front = Front::new(&edge);
    let analytics = match settings.analytics {
        Some(_) => Router::new().route(analytics::ROUTE, any(analytics::handle)),
        None => Router::new(),
    };
    Router::new()
        .route(&settings.login_path, only(GET_HEAD_POST, login::handle))
        .merge(callbacks(&edge))
        .route(logout::PATH, only(GET_HEAD_POST, logout::handle))
        .route("/api/auth/me", only(GET_HEAD, profile::handle))
        .route("/api/auth/401", any(status::unauthorized))
        .route("/api/auth/status", only(GET, status::handle))
        .route(
            "/api/auth/access-token",
            if_on(settings.access_token_endpoint, only(GET, access_token::handle)),
        )
        .route("/api/auth/backchannel-logout", only(POST, back_channel::handle))
        .route(
            "/api/auth/frontchannel-logout",
            if_on(settings.frontchannel_logout, only(GET, front_channel::handle)),
        )
        .route(gateway::check::PATH, any(gateway::check::handle))
        .route(
            gateway::assertion::JWKS_PATH,
            if_on(settings.assertions.is_some(), only(GET_HEAD, gateway::jwks)),
        )
        .route(BASE_PATH, any(not_found))
        .route("/api/auth/", any(not_found))
        .route("/api/auth/{*rest}", any(not_found))
        .route(client_keys::PATH, only(GET_HEAD, client_keys::handle))
        .merge(analytics)
        .merge(grpc_web::routes(&edge))
        .fallback(gateway::handle)
        .layer(layer::layer(front))
        .with_state(edge)
}

/// One callback for each provider, in the way it answers: what comes to it can be nobody else's answer.
fn callbacks(edge: &Edge) -> Router<Edge> {
    let mut router = Router::new();
    for (at, provider) in edge.providers.all().iter().enumerate() {
        let methods = match provider.response_mode() {
            ResponseMode::FormPost => POST,
            ResponseMode::Query => GET,
        };
        let handle = move |State(edge): State<Edge>, request: Request| callback::handle(edge, at, request);
        router = router.route(&provider.callback_path, only(methods, handle));
    }
    router
}

/// Methods, and their names for `Allow`.
type Methods = (MethodFilter, &'static str);

const GET: Methods = (MethodFilter::GET, "GET");
const POST: Methods = (MethodFilter::POST, "POST");
const GET_HEAD: Methods = (MethodFilter::GET.or(MethodFilter::HEAD), "GET, HEAD");
const GET_HEAD_POST: Methods = (GET_HEAD.0.or(MethodFilter::POST), "GET, HEAD, POST");

/// Answers these methods; the others get 405 with `Allow`.
fn only<H, T>((filter, names): Methods, handler: H) -> MethodRouter<Edge>
where
    H: Handler<T, Edge>,
    T: 'static,
{
    let refuse = move || async move { Failure::MethodNotAllowed(names) };
    let route = on(filter, handler).fallback(refuse);
    // Otherwise whoever answers GET answers HEAD.
    if names == GET.1 {
        route.on(MethodFilter::HEAD, refuse)
    } else {
        route
    }
}

/// A route that configuration has switched off is not there at all.
fn if_on(on: bool, route: MethodRouter<Edge>) -> MethodRouter<Edge> {
    if on { route } else { any(not_found) }
}

async fn not_found() -> Failure {
    Failure::NotFound
}

/// Whether a path of these segments, decoded and normalised, lies among the edge's own routes, in whatever letter case: the gateway
/// answers 404 to it instead of passing on to an upstream what looks like ours.
#[must_use]
pub fn is_reserved<S: AsRef<str>>(segments: &[S]) -> bool {
    lie_below(&[BASE_PATH, WELL_KNOWN_PATH], segments)
}

/// Whether a path belongs to a route that no setting moves, switched on or not: nothing else can be put there.
#[must_use]
pub fn is_fixed(path: &str) -> bool {
    FIXED.iter().any(|fixed| fixed.eq_ignore_ascii_case(path)) || lie_below(&TAKEN_BELOW, &segments(path))
}

/// The segments of a path of ours, which is written as it is matched.
#[must_use]
pub fn segments(path: &str) -> Vec<&str> {
    path.split('/').skip(1).collect()
}

fn lie_below<S: AsRef<str>>(bases: &[&str], segments: &[S]) -> bool {
    bases.iter().any(|base| {
        let mut asked = segments.iter().map(AsRef::as_ref);
        base.split('/').skip(1).all(|part| {
            asked
                .next()
                .is_some_and(|segment: &str| segment.eq_ignore_ascii_case(part))
        })
    })
}
