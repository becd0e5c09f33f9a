//! Forward auth: nginx `auth_request`, Traefik, Caddy ask whether a request may pass.
//!
//! Invariants
//! - What the proxy says about the original request is used as the return address alone, and only from a trusted proxy.
//! - Whether the request passes is the session's affair.
//!
//! The access token is for a proxy that checks a request: a page's own script that requests this route gets none, neither
//! here nor through a proxy.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use session_proto::v1::ErrorReason;
use session_proto::v1::session::State as SessionState;

use super::guard::{Authorized, UpstreamToken};
use super::headers::add_identity;
use crate::gateway::Gateway;
use crate::http::errors::HttpError;
use crate::http::observe::SessionHandle;
use crate::http::request::{self, first_parameter, is_prefetch, is_script};
use crate::sessions::{CurrentSession, Use};
use crate::values::reserved::CHECK_PATH;

/// Request extension: the address the browser requested, from a caller inside this process.
#[derive(Clone, Debug)]
pub(crate) struct OriginalUrl(pub(crate) String);

/// Answers a proxy that asks whether a request may pass.
pub(crate) async fn handle(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let headers = request.headers();
    let peer = request::peer(request.extensions());
    let device = || gateway.devices.of(headers, peer);
    let current = match gateway.sessions.current(headers, Use::Counts(&device)).await {
        Ok(Some(current)) => current,
        Ok(None) => return refuse(&gateway, &request),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "forward auth cannot ask for the session"
            );
            return HttpError::SessionServiceDown.into_response();
        }
    };
    let mut response = no_store(StatusCode::OK.into_response());
    if gateway.check_authorization && is_about_another_request(&gateway, &request) {
        match authorization(&gateway, &current).await {
            Ok(Some(value)) => {
                response.headers_mut().insert(header::AUTHORIZATION, value);
            }
            Ok(None) => return refuse(&gateway, &request),
            Err(failure) => return failure.into_response(),
        }
    }
    if let Some(cookie) = gateway.sessions.cookie_if_alive(&current).await {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
        .extensions_mut()
        .insert(SessionHandle(current.session.handle.clone()));
    add_identity(
        response.headers_mut(),
        &Authorized {
            current: Some(current),
            access_token: None,
        },
    );
    response
}

/// Whether a proxy checks a request to somewhere else: a caller inside this process, or a trusted proxy that says what was
/// asked for. A trusted proxy that passes a browser's own request for this route on is neither.
fn is_about_another_request(gateway: &Gateway, request: &Request) -> bool {
    if request.extensions().get::<OriginalUrl>().is_some() {
        return true;
    }
    let about = gateway
        .trusted_proxies
        .asked_about(request::peer(request.extensions()), request.headers());
    let path = about.and_then(|about| about.split(|byte| *byte == b'?').next());
    path.is_some_and(|path| !path.ends_with(CHECK_PATH.as_bytes()))
}

/// The `Authorization` for the upstream; `None` if the person has to sign in first: a token that is bound to a key (RFC
/// 9449), as sessions have from before `OIDC_DPOP` was switched off, is worth nothing to whoever asks, and the next sign-in
/// brings one that is.
async fn authorization(
    gateway: &Gateway,
    current: &CurrentSession,
) -> Result<Option<HeaderValue>, HttpError> {
    if current.session.state() == SessionState::NeedsSignIn {
        return Ok(None);
    }
    match gateway.sessions.access_token(&current.id, Vec::new()).await {
        Ok(granted) if UpstreamToken::from(&*granted).bound => Ok(None),
        Ok(granted) => Ok(granted.authorization.clone()),
        Err(error) if error.reason == ErrorReason::ErrProviderUnavailable => Err(HttpError::Session {
            reason: error.reason,
            scopes: None,
            handler: None,
        }),
        Err(error) if error.is_unavailable() => Err(HttpError::SessionServiceDown),
        Err(_) => Ok(None),
    }
}

/// 401, or for `?redirect=1` and a person at the other end 302 to the login route.
fn refuse(gateway: &Gateway, request: &Request) -> Response {
    let headers = request.headers();
    let redirect = first_parameter(request.uri().query().unwrap_or_default(), "redirect")
        .is_some_and(|value| value == "1");
    let visits = request::is_navigation(headers) && !is_script(headers) && !is_prefetch(headers);
    if !redirect || !visits {
        return no_store(HttpError::NotAuthenticated.into_response());
    }
    let login = gateway
        .sites
        .of(headers)
        .login_url(original(gateway, request, headers).as_deref(), None);
    match HeaderValue::try_from(login) {
        Ok(login) => no_store((StatusCode::FOUND, [(header::LOCATION, login)]).into_response()),
        Err(_) => no_store(HttpError::NotAuthenticated.into_response()),
    }
}

fn original(gateway: &Gateway, request: &Request, headers: &HeaderMap) -> Option<String> {
    if let Some(OriginalUrl(url)) = request.extensions().get::<OriginalUrl>() {
        return Some(url.clone());
    }
    gateway
        .trusted_proxies
        .original_url(request::peer(request.extensions()), headers)
}

fn no_store(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
