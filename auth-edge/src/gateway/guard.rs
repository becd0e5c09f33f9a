//! Which requests are authorized, and the answers to the others.
//!
//! Invariants
//! - A guarded route never answers from its upstream before its guard has said yes.
//! - A session service that cannot be reached is 503 and changes no cookie.
//! - Nothing but the session decides, or on routes that take them an access token; no header ever skips a guard.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, header};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use oidc::VerifiedAccessToken;
use session_proto::timestamp;
use session_proto::v1::session::State;
use session_proto::v1::{ErrorReason, GetAccessTokenResponse, Session};

use super::{bearer, challenge, cross_site, kept_form};
use crate::gateway::Gateway;
use crate::http::errors::{HttpError, wants_page};
use crate::http::request::{self, is_prefetch, is_script};
use crate::providers::ProviderHint;
use crate::route_table::missing::{Missing, WRONG_CONNECTION, WRONG_ORGANIZATION};
use crate::route_table::principal::Principal;
use crate::route_table::requirements::Requirements;
use crate::route_table::{Guard, Route};
use crate::sessions::device_binding::DeviceStanding;
use crate::sessions::{CachedToken, CurrentSession, Use, authorization};
use crate::values::allowed_parameters::CONNECTION;
use crate::values::reserved::device_page;
use crate::values::return_to::ReturnTo;

/// What an authorized request is passed on with.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorized {
    /// The session, where the route is guarded.
    pub(crate) current: Option<CurrentSession>,
    /// The access token, where the route attaches it.
    pub(crate) access_token: Option<UpstreamToken>,
    /// The access token the client has shown, where it stands in the place of a session.
    pub(crate) bearer: Option<Arc<VerifiedAccessToken>>,
}

impl Authorized {
    /// Who the request acts for; none where the route is not guarded.
    pub(super) fn principal(&self) -> Option<&dyn Principal> {
        match (&self.current, &self.bearer) {
            (Some(current), _) => Some(&*current.session),
            (None, Some(token)) => Some(&**token),
            (None, None) => None,
        }
    }
}

/// An access token for an upstream.
#[derive(Clone)]
pub(super) struct UpstreamToken {
    /// The token as it is presented, by its scheme; none if it is nothing a header can hold.
    pub(crate) authorization: Option<HeaderValue>,
    /// Whether it is worth nothing without a proof (RFC 9449).
    pub(crate) bound: bool,
    /// When it expires, in milliseconds since the Unix epoch.
    pub(crate) expires_at_ms: u64,
}

impl From<&CachedToken> for UpstreamToken {
    fn from(token: &CachedToken) -> Self {
        Self {
            bound: token.token_type.eq_ignore_ascii_case("DPoP"),
            expires_at_ms: token.expires_at_ms,
            authorization: token.authorization.clone(),
        }
    }
}

impl From<GetAccessTokenResponse> for UpstreamToken {
    fn from(granted: GetAccessTokenResponse) -> Self {
        Self {
            bound: granted.token_type.eq_ignore_ascii_case("DPoP"),
            expires_at_ms: granted.expires_at.as_ref().map_or(u64::MAX, timestamp::to_ms),
            authorization: authorization(&granted.token_type, &granted.access_token),
        }
    }
}

impl std::fmt::Debug for UpstreamToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamToken")
            .field("expires_at_ms", &self.expires_at_ms)
            .finish_non_exhaustive()
    }
}

/// Authorizes a request, or answers it.
pub(super) async fn authorize(
    gateway: &Gateway,
    route: &Route,
    request: &RequestHead<'_>,
) -> Result<Authorized, Response> {
    if let Some(rule) = &route.bearer
        && let Some(presented) = bearer::presented(request.headers)
    {
        let site = gateway.sites.of(request.headers);
        let shown = bearer::ShownRequest {
            headers: request.headers,
            peer: request.peer,
            method: request.method.as_str(),
            origin: &site.at(""),
            path: request.uri.path(),
            resource: &bearer::Resource::at(site, rule),
        };
        // A future of its own: requests that come with a cookie do not carry it.
        let token = Box::pin(bearer::authorize(gateway, route, rule, &shown, presented)).await?;
        return Ok(Authorized {
            bearer: Some(token),
            ..Authorized::default()
        });
    }
    if route.guard == Guard::Open || cross_site::is_preflight(request) {
        return Ok(Authorized::default());
    }
    let base = gateway.sites.of(request.headers).base_url();
    if !cross_site::is_own(route.csrf, request, base) {
        return Err(HttpError::Csrf.into_response());
    }
    let device = || gateway.devices.of(request.headers, request.peer);
    let current = gateway
        .sessions
        .current(request.headers, Use::Counts(&device))
        .await
        .map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a guard cannot ask for the session"
            );
            HttpError::SessionServiceDown.into_response()
        })?;
    let Some(current) = current else {
        return Err(refuse(gateway, route, request, None, Missing::Session));
    };
    let access_token = met_by(gateway, route, request.headers, &current)
        .await
        .map_err(|missing| refuse(gateway, route, request, Some(&current.session), missing))?;
    Ok(Authorized {
        access_token: access_token.filter(|_| route.requirements.access_token),
        current: Some(current),
        bearer: None,
    })
}

/// What a session misses of what a route requires; if nothing, the access token that the route requires.
pub(super) async fn met_by(
    gateway: &Gateway,
    route: &Route,
    headers: &HeaderMap,
    current: &CurrentSession,
) -> Result<Option<UpstreamToken>, Missing> {
    let checked = route
        .requirements
        .check_all(&current.session, gateway.clock.now_ms(), &gateway.providers);
    checked.map_err(|missing| {
        let requirements = route.requirements.with_what_is_owed(Some(&current.session));
        let was_requested = missing.is_of_sign_in()
            && gateway
                .pending
                .is_known_unmet(headers, &requirements.unmet_key(&current.id));
        if was_requested {
            missing.after_sign_in(&current.session, &requirements)
        } else {
            missing
        }
    })?;
    if route.requirements.device_bound && current.device != DeviceStanding::Proven {
        return Err(Missing::Device);
    }
    if route.requirements.needs_token() {
        token(gateway, current, route).await.map(Some)
    } else {
        Ok(None)
    }
}

/// Whether a session that no rule requires anything of owes no sign-in.
pub(super) fn owes_nothing(
    gateway: &Gateway,
    headers: &HeaderMap,
    current: &CurrentSession,
) -> Result<(), Missing> {
    if current.session.sign_in_demand.is_none() {
        return Ok(());
    }
    let none = Requirements::default();
    let requirements = none.with_what_is_owed(Some(&current.session));
    let is_known = gateway
        .pending
        .is_known_unmet(headers, &requirements.unmet_key(&current.id));
    Err(if is_known {
        Missing::StepUp.after_sign_in(&current.session, &requirements)
    } else {
        Missing::StepUp
    })
}

/// The answer where no rule is that could say more.
pub(super) fn refusal_without_rule(session: Option<&Session>, missing: Missing) -> Response {
    let none = Requirements::default();
    no_store(match missing {
        Missing::StepUp => challenged(
            HttpError::NotAuthenticated.into_response(),
            challenge::step_up(&none.with_what_is_owed(session)),
        ),
        Missing::NotBySignIn(failure) => failure.into_response(),
        Missing::Session
        | Missing::Organization
        | Missing::Connection
        | Missing::Device
        | Missing::Token(_) => HttpError::NotAuthenticated.into_response(),
    })
}

/// The parts of a request a guard looks at.
pub(super) struct RequestHead<'a> {
    /// Method.
    pub(crate) method: &'a Method,
    /// Path and query as they came.
    pub(crate) uri: &'a Uri,
    /// Headers as they came.
    pub(crate) headers: &'a HeaderMap,
    /// Who opened the connection.
    pub(crate) peer: IpAddr,
    /// Whether a body comes with it.
    pub(crate) has_body: bool,
    /// Whether it is a WebSocket handshake.
    pub(crate) is_websocket: bool,
}

async fn token(gateway: &Gateway, current: &CurrentSession, route: &Route) -> Result<UpstreamToken, Missing> {
    if current.session.state() == State::NeedsSignIn {
        return Err(Missing::Token(ErrorReason::ErrFailedRefreshGrant));
    }
    let error = match gateway
        .sessions
        .access_token(&current.id, route.requirements.token_for())
        .await
    {
        Ok(granted) => return Ok(UpstreamToken::from(&*granted)),
        Err(error) => error,
    };
    if error.is_unavailable() {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "a guard cannot ask for the access token"
        );
        let failure = if error.reason == ErrorReason::ErrProviderUnavailable {
            HttpError::Session {
                reason: error.reason,
                scopes: None,
                handler: None,
            }
        } else {
            HttpError::SessionServiceDown
        };
        return Err(Missing::NotBySignIn(failure));
    }
    Err(match error.reason {
        ErrorReason::ErrInsufficientScope => {
            let scopes = error.metadata.get("scopes").cloned();
            Missing::NotBySignIn(HttpError::Session {
                reason: error.reason,
                scopes,
                handler: None,
            })
        }
        // The provider gives this session no such token, however often somebody signs in.
        ErrorReason::ErrInvalidTarget
        | ErrorReason::ErrFailedTokenExchange
        | ErrorReason::ErrMissingRefreshToken => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                route = &*route.name,
                "there is no access token for the API of a route"
            );
            Missing::NotBySignIn(HttpError::Session {
                reason: error.reason,
                scopes: None,
                handler: None,
            })
        }
        // It ended just now.
        ErrorReason::ErrMissingSession => Missing::Session,
        // Missing, expired, refused: signing in again brings one.
        reason => Missing::Token(reason),
    })
}

/// Answers what is missing: people are sent to sign in where that helps, programs get an answer they can read.
fn refuse(
    gateway: &Gateway,
    route: &Route,
    request: &RequestHead<'_>,
    session: Option<&Session>,
    missing: Missing,
) -> Response {
    let back = request.uri.path_and_query().map_or("/", |target| target.as_str());
    let remedy = |connection| match missing {
        Missing::Device => device_page(back),
        _ => sign_in(&gateway.login_path, back, &route.requirements, connection),
    };
    if let Missing::NotBySignIn(_) = missing {
        let login = remedy(None);
        return refusal(route, session, missing, &login);
    }
    if route.guard == Guard::Page {
        if is_prefetch(request.headers) {
            return no_store(StatusCode::NO_CONTENT.into_response());
        }
        let connection = same_provider(gateway, &missing, session);
        if navigates(request) {
            return no_store(Redirect::temporary(&remedy(connection)).into_response());
        }
        if sends_form(request) && !matches!(missing, Missing::Device) {
            let login_url = elsewhere(gateway, route, request);
            let mut refused = no_store(HttpError::not_sent(login_url).into_response());
            if route.keep_form {
                let back = kept_form::way_back(request.uri.path());
                let login = sign_in(&gateway.login_path, &back, &route.requirements, connection);
                kept_form::mark(gateway, &mut refused, login, session);
            }
            return refused;
        }
    }
    let invites = matches!(missing, Missing::Session);
    let mut response = refusal(route, session, missing, "");
    if let Some(rule) = route.bearer.as_ref().filter(|_| invites) {
        let resource = bearer::Resource::at(gateway.sites.of(request.headers), rule);
        bearer::invite(&mut response, rule, &resource);
    }
    response
}

/// The provider to authenticate at again whoever is signed in: the same one.
pub(super) fn same_provider<'a>(
    gateway: &'a Gateway,
    missing: &Missing,
    session: Option<&Session>,
) -> Option<&'a str> {
    let again = match missing {
        Missing::StepUp | Missing::Token(_) => session,
        Missing::Session
        | Missing::Organization
        | Missing::Connection
        | Missing::Device
        | Missing::NotBySignIn(_) => None,
    };
    gateway.providers.connection_of(&again?.issuer)
}

/// The answer that says what is missing; at `login` people sign in for this route.
pub(super) fn refusal(route: &Route, session: Option<&Session>, missing: Missing, login: &str) -> Response {
    no_store(match missing {
        Missing::Token(reason) => HttpError::Session {
            reason,
            scopes: None,
            handler: None,
        }
        .into_response(),
        Missing::Organization => WRONG_ORGANIZATION.into_response(),
        Missing::Connection => WRONG_CONNECTION.into_response(),
        Missing::Device => HttpError::NotBound { login_url: None }.into_response(),
        Missing::StepUp => challenged(
            HttpError::NotAuthenticated.into_response(),
            challenge::step_up(&route.requirements.with_what_is_owed(session)),
        ),
        Missing::Session => HttpError::NotAuthenticated.into_response(),
        Missing::NotBySignIn(failure) => {
            let challenge = match &failure {
                HttpError::Session {
                    reason: ErrorReason::ErrInsufficientScope,
                    ..
                } => challenge::scopes(&route.requirements.scopes),
                _ => None,
            };
            challenged(explained(failure, route, login).into_response(), challenge)
        }
    })
}

/// A failure with what the rule has to say of it, and a way to come as somebody else.
fn explained(failure: HttpError, route: &Route, login: &str) -> HttpError {
    match failure {
        HttpError::MissingClaims { claims, .. } => HttpError::MissingClaims {
            claims,
            message: route.denied_message.clone(),
            // OpenID Connect Core, section 3.1.2.1: whoever is signed in at the provider is asked all the same.
            other_account: (!login.is_empty()).then(|| format!("{login}&prompt=login")),
        },
        other => other,
    }
}

fn challenged(mut response: Response, challenge: Option<HeaderValue>) -> Response {
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Anything else than a navigation would lose what it carries, or could not follow to another origin.
fn navigates(request: &RequestHead<'_>) -> bool {
    is_whole_page(request) && matches!(*request.method, Method::GET | Method::HEAD)
}

/// A person has sent a form and looks at the window for an answer.
fn sends_form(request: &RequestHead<'_>) -> bool {
    is_whole_page(request) && wants_page(request.headers)
}

fn is_whole_page(request: &RequestHead<'_>) -> bool {
    request::is_navigation(request.headers) && !is_script(request.headers)
}

/// Where to sign in in another tab, at the provider of this page.
fn elsewhere(gateway: &Gateway, route: &Route, request: &RequestHead<'_>) -> String {
    let site = gateway.sites.of(request.headers);
    let named = ProviderHint {
        by_route: route.connection(),
        ..ProviderHint::default()
    };
    let page = ReturnTo::parse(site.base_url(), request.uri.path());
    let provider = gateway.providers.choose(named, site, page.as_ref()).ok();
    let connection = provider.and_then(|provider| gateway.providers.connection_of(provider.issuer()));
    site.login_url(None, connection)
}

/// The login route at `login`, with the return address and all the route requires of a sign-in: what one sign-in brought the
/// next would lose again.
pub(super) fn sign_in(
    login: &str,
    back: &str,
    requirements: &Requirements,
    connection: Option<&str>,
) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("returnTo", back);
    if let Some(connection) = connection {
        query.append_pair(CONNECTION, connection);
    }
    if let Some(max_age_secs) = requirements.max_age_secs {
        query.append_pair("max_age", &max_age_secs.to_string());
    }
    if !requirements.acr.is_empty() {
        query.append_pair("acr_values", &requirements.acr.join(" "));
    }
    if let Some(organization) = &requirements.organization {
        query.append_pair("organization", organization);
    }
    format!("{login}?{}", query.finish())
}

fn no_store(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
