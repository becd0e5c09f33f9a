//! The routes of the edge, top to bottom.
//!
//! Invariants
//! - Below `/api/auth/` there are exactly these routes. The route table cannot change them.
//! - A request with a wrong method changes nothing.
//! - Every answer passes the layers at the end of the router.
//!
//! Deliberately absent: decisions.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef as _, Request, State};
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, Route, any, on};
use oidc::ResponseMode;
use tower::layer::layer_fn;
use tower::service_fn;

use crate::app::App;
use crate::browser::{Browser, access_token, analytics, client_keys, grpc_web, profile, status};
use crate::gateway;
use crate::gateway::bearer::resource;
use crate::http::errors::HttpError;
use crate::http::layer::answer;
use crate::kept_form;
use crate::oauth2_proxy;
use crate::sign_in::SignIn;
use crate::sign_in::{
    back_channel, callback, device_binding, frame, front_channel, login, logout, security_events,
};
use crate::values::reserved::{
    ACCESS_TOKEN_PATH, BACK_CHANNEL_PATH, BASE_PATH, CHECK_PATH, DEVICE_PATH, DEVICE_REFRESH_PATH,
    DEVICE_REGISTER_PATH, EVENTS_PATH, FORM_PATH, FRAME_CALLBACK_PATH, FRAME_LOGIN_PATH, FRONT_CHANNEL_PATH,
    LOGO_PATH, LOGOUT_PATH, ME_PATH, RESOURCE_METADATA_PATH, REVOCATION_PATH, STATUS_PATH, UNAUTHORIZED_PATH,
};

/// The edge as a router.
pub fn router(app: App) -> Router {
    let settings = app.settings();
    let around = Arc::clone(&app.0.layer);
    let analytics = match settings.analytics {
        Some(_) => Router::new().route(analytics::ROUTE, any(analytics::handle)),
        None => Router::new(),
    };
    let aliases = match settings.aliases {
        true => oauth2_proxy::routes(),
        false => Router::new(),
    };
    let binds = settings.device_bound.is_some();
    let is_embedded = !settings.frame_ancestors.is_empty();
    Router::new()
        .route(&settings.sign_in.login_path, only(GET_HEAD_POST, login::handle))
        .merge(callbacks(&app))
        .route(LOGOUT_PATH, only(GET_HEAD_POST, logout::handle))
        .route(ME_PATH, only(GET_HEAD, profile::handle))
        .route(UNAUTHORIZED_PATH, any(status::unauthorized))
        .route(STATUS_PATH, only(GET, status::handle))
        .route(
            ACCESS_TOKEN_PATH,
            if_on(settings.access_token_endpoint, only(GET, access_token::handle)),
        )
        .route(DEVICE_PATH, if_on(binds, only(GET, device_binding::page)))
        .route(
            DEVICE_REGISTER_PATH,
            if_on(binds, only(POST, device_binding::register)),
        )
        .route(
            DEVICE_REFRESH_PATH,
            if_on(binds, only(POST, device_binding::refresh)),
        )
        .route(FRAME_LOGIN_PATH, if_on(is_embedded, only(POST, frame::begin)))
        .route(FRAME_CALLBACK_PATH, if_on(is_embedded, only(POST, frame::finish)))
        .route(BACK_CHANNEL_PATH, only(POST, back_channel::handle))
        .route(EVENTS_PATH, only(POST, security_events::receive))
        .route(REVOCATION_PATH, only(POST, security_events::revoke))
        .route(
            FRONT_CHANNEL_PATH,
            if_on(
                settings.sign_in.frontchannel_logout,
                only(GET, front_channel::handle),
            ),
        )
        .route(CHECK_PATH, any(gateway::check::handle))
        .route(
            gateway::assertion::JWKS_PATH,
            if_on(settings.assertions.is_some(), only(GET_HEAD, gateway::jwks)),
        )
        .route(FORM_PATH, only(GET_HEAD_POST, kept_form::handle))
        .route(LOGO_PATH, only(GET_HEAD, logo))
        .route(RESOURCE_METADATA_PATH, any(resource::metadata))
        .route(
            &format!("{RESOURCE_METADATA_PATH}/{{*resource}}"),
            any(resource::metadata),
        )
        .route(BASE_PATH, any(not_found))
        .route("/api/auth/", any(not_found))
        .route("/api/auth/{*rest}", any(not_found))
        .route(client_keys::PATH, only(GET_HEAD, client_keys::handle))
        .merge(analytics)
        .merge(aliases)
        .merge(grpc_web::routes(&app.0.browser))
        .fallback(gateway::handle)
        .layer(layer_fn(move |inner: Route| {
            let around = Arc::clone(&around);
            service_fn(move |request| answer(Arc::clone(&around), inner.clone(), request))
        }))
        .with_state(app)
}

/// Envoy's external authorization over gRPC. The routes of [`router`] decide.
pub fn ext_authz(app: App) -> Router {
    let behind = Arc::from_ref(&app);
    gateway::ext_authz::routes(behind, router(app))
}

/// One callback path for each provider, with the method of its response mode. No other provider uses it.
fn callbacks(app: &App) -> Router<App> {
    let mut router = Router::new();
    for provider in &app.0.sign_in.providers.all {
        let methods = match provider.response_mode() {
            ResponseMode::FormPost => POST,
            ResponseMode::Query => GET,
        };
        let own = Arc::clone(provider);
        let handle = move |State(sign_in): State<Arc<SignIn>>, request: Request| {
            callback::handle(sign_in, own.clone(), request)
        };
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

/// Answers these methods, and all others with 405 and `Allow`.
fn only<H, T>((filter, names): Methods, handler: H) -> MethodRouter<App>
where
    H: Handler<T, App>,
    T: 'static,
{
    let refuse = move || async move { HttpError::MethodNotAllowed(names.into()) };
    let route = on(filter, handler).fallback(refuse);
    // By default, the handler of GET also answers HEAD.
    if names == GET.1 {
        route.on(MethodFilter::HEAD, refuse)
    } else {
        route
    }
}

/// If the configuration switches a route off, the edge answers 404.
fn if_on(on: bool, route: MethodRouter<App>) -> MethodRouter<App> {
    if on { route } else { any(not_found) }
}

async fn logo(State(browser): State<Arc<Browser>>) -> Result<Response, HttpError> {
    browser.pages.logo().ok_or(HttpError::NotFound)
}

async fn not_found() -> HttpError {
    HttpError::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::reserved::{CALLBACK_PATH, is_fixed};

    #[test]
    fn no_setting_and_no_route_of_a_file_can_take_a_path_of_this_table() {
        for path in [
            CALLBACK_PATH,
            LOGOUT_PATH,
            ME_PATH,
            UNAUTHORIZED_PATH,
            STATUS_PATH,
            ACCESS_TOKEN_PATH,
            FRAME_LOGIN_PATH,
            FRAME_CALLBACK_PATH,
            BACK_CHANNEL_PATH,
            EVENTS_PATH,
            REVOCATION_PATH,
            FRONT_CHANNEL_PATH,
            CHECK_PATH,
            BASE_PATH,
            gateway::assertion::JWKS_PATH,
            client_keys::PATH,
            analytics::ROUTE,
            "/session.v1.BrowserSessionService/GetCurrentSession",
            "/session.v1.OperatorSessionService/SearchSessions",
        ] {
            assert!(is_fixed(path), "{path}");
        }
    }
}
