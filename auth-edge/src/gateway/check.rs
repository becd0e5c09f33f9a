//! Forward auth: nginx `auth_request`, Traefik, Caddy ask whether a request may pass.
//!
//! Invariants
//! - What the proxy says about the original request is used as the return address, and to find the rule (`[[check]]`) that
//!   says what the request requires and what its application is told; and only from a trusted proxy.
//! - Where there are such rules, a request that none of them answers does not pass.
//! - Whether the request passes is the session's affair, or that of an access token where the rule takes them.
//!
//! The access token is for a proxy that checks a request: a page's own script that requests this route gets none, neither
//! here nor through a proxy.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use oidc::VerifiedAccessToken;
use session_proto::v1::session::State as SessionState;
use session_proto::v1::{ErrorReason, Session};

use super::check_rule::{self, CheckRule};
use super::guard::{Authorized, UpstreamToken};
use super::headers::{add_identity, add_told};
use super::{assertion, bearer, guard, refusal};
use crate::gateway::Gateway;
use crate::http::errors::HttpError;
use crate::http::observe::{ClientOfToken, SessionHandle};
use crate::http::request::{self, first_parameter, is_prefetch, is_script};
use crate::route_table::missing::Missing;
use crate::route_table::requirements::Requirements;
use crate::route_table::upstream_headers::ToldNames;
use crate::route_table::{Guard, Route};
use crate::sessions::{CurrentSession, TokenFor, Use};
use crate::values::reserved::{CHECK_PATH, device_page};

/// Request extension: the address the browser requested, from a caller inside this process.
#[derive(Clone, Debug)]
pub(crate) struct OriginalUrl(pub(crate) String);

/// Request extension: the method the browser requested it by, from a caller inside this process.
#[derive(Clone, Debug)]
pub(crate) struct OriginalMethod(pub(crate) Method);

/// Response extension: by which of the answer's headers the application is told who it is, besides the edge's own, and by
/// which it is told of anybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForApplication {
    /// Headers of this answer.
    pub(crate) headers: Vec<HeaderName>,
    /// Names no client may send.
    pub(crate) names: ToldNames,
}

/// Response extension: the client's own access token is not for the application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenEndsHere;

/// Answers a proxy that asks whether a request may pass.
pub(crate) async fn handle(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let rule = match check_rule::find(&gateway, &request) {
        Ok(rule) => rule,
        Err(failure) => return no_store(failure.into_response()),
    };
    let route = rule.as_ref().map(|rule| &*rule.route);
    let told = ForApplication {
        headers: Vec::new(),
        names: gateway.routes.told_names(),
    };
    let mut response = no_store(StatusCode::OK.into_response());
    if route.is_some_and(|route| route.guard == Guard::Open) {
        return with_names(response, told);
    }
    let headers = request.headers();
    let peer = request::peer(request.extensions());
    if let Some(rule) = &rule
        && let Some(required) = &rule.route.bearer
        && let Some(presented) = bearer::presented(headers)
    {
        let method = check_rule::original_method(&gateway, &request);
        let shown = bearer::ShownRequest {
            headers,
            peer,
            method: method.as_ref().map_or("", Method::as_str),
            origin: &rule.origin,
            path: &rule.path,
            resource: &bearer::Resource::elsewhere(&rule.resource_origin, &rule.path),
        };
        let judged = Box::pin(bearer::authorize(
            &gateway,
            &rule.route,
            required,
            &shown,
            presented,
        ))
        .await;
        return match judged {
            Ok(token) => by_token(&gateway, response, rule, token, told),
            Err(refused) => no_store(refused),
        };
    }
    let device = || gateway.devices.of(headers, peer);
    // The proxy sends a cookie with the application's answer: after a body, that is late.
    let is_late = gateway.sessions.rotates_cookies() && may_have_a_body(&gateway, &request);
    let use_ = if is_late {
        Use::CountsAndIsAnsweredLate(&device)
    } else {
        Use::Counts(&device)
    };
    let current = match gateway.sessions.current(headers, use_).await {
        Ok(Some(current)) => current,
        Ok(None) => return refuse(&gateway, &request, route, None, Missing::Session),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "forward auth cannot ask for the session"
            );
            return HttpError::SessionServiceDown.into_response();
        }
    };
    let met = match route {
        Some(route) => guard::met_by(&gateway, route, headers, &current).await.map(drop),
        None => guard::meets(&gateway, &Requirements::default(), headers, &current),
    };
    if let Err(missing) = met {
        return refuse(&gateway, &request, route, Some(&current.session), missing);
    }
    if gateway.check_authorization && is_about_another_request(&gateway, &request) {
        let requested = RequestedToken::of(request.uri().query().unwrap_or_default());
        // What a rule says nobody overrides.
        let by_rule = route.map(|route| route.requirements.token_for());
        let wanted = by_rule
            .filter(TokenFor::names_api)
            .unwrap_or(requested.token_for());
        match authorization(&gateway, &current, wanted).await {
            Ok(Some(value)) => {
                response.headers_mut().insert(header::AUTHORIZATION, value);
            }
            Ok(None) => return refuse(&gateway, &request, route, None, Missing::Session),
            Err(failure) => return failure.into_response(),
        }
    }
    if let Some(cookie) = gateway.sessions.cookie_if_alive(&current).await {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
        .extensions_mut()
        .insert(SessionHandle(current.session.handle.clone()));
    let authorized = Authorized {
        current: Some(current),
        ..Authorized::default()
    };
    add_identity(response.headers_mut(), &authorized);
    match rule {
        Some(rule) => tell(&gateway, response, &rule, &authorized, told),
        None => with_names(response, told),
    }
}

/// What a check answers to a client that passes by an access token of its own.
fn by_token(
    gateway: &Gateway,
    mut response: Response,
    rule: &CheckRule,
    token: Arc<VerifiedAccessToken>,
    told: ForApplication,
) -> Response {
    let extensions = response.extensions_mut();
    extensions.insert(ClientOfToken(token.client_id.clone()));
    if rule
        .route
        .bearer
        .as_ref()
        .is_some_and(|rule| !rule.pass_authorization)
    {
        extensions.insert(TokenEndsHere);
    }
    let authorized = Authorized {
        bearer: Some(token),
        ..Authorized::default()
    };
    add_identity(response.headers_mut(), &authorized);
    tell(gateway, response, rule, &authorized, told)
}

/// Names what is told, for a caller inside this process; where nothing ever is, nothing is named.
fn with_names(mut response: Response, told: ForApplication) -> Response {
    if !told.names.is_empty() {
        response.extensions_mut().insert(told);
    }
    response
}

/// Tells the application, in the answer's headers, what its rule says that it reads.
fn tell(
    gateway: &Gateway,
    mut response: Response,
    rule: &CheckRule,
    authorized: &Authorized,
    mut told: ForApplication,
) -> Response {
    let mut headers = HeaderMap::new();
    add_told(&mut headers, gateway, &rule.route, authorized);
    if let Some(who) = authorized.principal().filter(|_| rule.route.upstream_jwt)
        && let Err(failure) = assertion::add(response.headers_mut(), gateway, who, &rule.origin)
    {
        return failure.into_response();
    }
    told.headers = headers.keys().cloned().collect();
    response.headers_mut().extend(headers);
    with_names(response, told)
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

/// Which access token the proxy's configuration requests, as parameters of the check.
struct RequestedToken {
    audience: String,
    resource: String,
    scopes: Vec<String>,
}

impl RequestedToken {
    fn of(query: &str) -> Self {
        let text = |name| first_parameter(query, name).unwrap_or_default();
        Self {
            audience: text("audience"),
            resource: text("resource"),
            scopes: text("scope")
                .split_ascii_whitespace()
                .map(str::to_owned)
                .collect(),
        }
    }

    fn token_for(&self) -> TokenFor<'_> {
        TokenFor {
            scopes: &self.scopes,
            audience: &self.audience,
            resource: &self.resource,
        }
    }
}

/// The `Authorization` for the upstream; `None` if the person has to sign in first: a token that is bound to a key (RFC
/// 9449), as sessions have from before `OIDC_DPOP` was switched off, is worth nothing to whoever asks, and the next sign-in
/// brings one that is.
async fn authorization(
    gateway: &Gateway,
    current: &CurrentSession,
    wanted: TokenFor<'_>,
) -> Result<Option<HeaderValue>, HttpError> {
    if current.session.state() == SessionState::NeedsSignIn {
        return Ok(None);
    }
    match gateway.sessions.access_token(&current.id, wanted).await {
        Ok(granted) if UpstreamToken::from(&*granted).bound => Ok(None),
        Ok(granted) => Ok(granted.authorization.clone()),
        Err(error) if is_told(error.reason) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "forward auth has no access token to hand out"
            );
            Err(HttpError::Session {
                reason: error.reason,
                scopes: error.metadata.get("scopes").cloned(),
                handler: None,
            })
        }
        Err(error) if error.is_unavailable() => Err(HttpError::SessionServiceDown),
        Err(_) => Ok(None),
    }
}

/// Whether a sign-in does not help, and so the reason is told.
fn is_told(reason: ErrorReason) -> bool {
    matches!(
        reason,
        ErrorReason::ErrProviderUnavailable
            | ErrorReason::ErrInsufficientScope
            | ErrorReason::ErrInvalidTarget
            | ErrorReason::ErrFailedTokenExchange
            | ErrorReason::ErrMissingRefreshToken
            | ErrorReason::ErrInvalidArgument
    )
}

/// Whether the original request may have a body; one whose proxy does not tell its method may.
fn may_have_a_body(gateway: &Gateway, request: &Request) -> bool {
    let method = check_rule::original_method(gateway, request);
    !matches!(method, Some(Method::GET | Method::HEAD | Method::OPTIONS))
}

/// 401 or 403 by what is missing, or for `?redirect=1` and a person at the other end 302 to the login route where signing in
/// brings it.
fn refuse(
    gateway: &Gateway,
    request: &Request,
    route: Option<&Route>,
    session: Option<&Session>,
    missing: Missing,
) -> Response {
    let headers = request.headers();
    let site = gateway.sites.of(headers);
    let back = original(gateway, request, headers);
    let connection = refusal::same_provider(gateway, &missing, session);
    let login = match (route, &back) {
        (Some(_), Some(back)) if matches!(missing, Missing::Device) => site.at(&device_page(back)),
        (Some(route), Some(back)) => {
            let login = site.at(&gateway.login_path);
            refusal::sign_in(&login, back, &route.requirements, connection)
        }
        _ => site.login_url(back.as_deref(), connection),
    };
    let redirect = first_parameter(request.uri().query().unwrap_or_default(), "redirect")
        .is_some_and(|value| value == "1");
    let visits = request::is_navigation(headers) && !is_script(headers) && !is_prefetch(headers);
    let sends_people = route.is_none_or(|route| route.guard == Guard::Page);
    let by_sign_in = !matches!(missing, Missing::NotBySignIn(_));
    if redirect
        && visits
        && sends_people
        && by_sign_in
        && let Ok(login) = HeaderValue::try_from(&login)
    {
        return no_store((StatusCode::FOUND, [(header::LOCATION, login)]).into_response());
    }
    let invites = matches!(missing, Missing::Session);
    let login = if back.is_some() { &*login } else { "" };
    let mut response = refusal::refusal(route, session, missing, login);
    if let Some(rule) = route.and_then(|route| route.bearer.as_ref()).filter(|_| invites) {
        bearer::invite(&mut response, rule, &bearer::Resource::elsewhere("", "/"));
    }
    response
}

/// The address the browser requested, as a caller that is believed says.
pub(super) fn original(gateway: &Gateway, request: &Request, headers: &HeaderMap) -> Option<String> {
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
