//! Decides which requests are authorized.
//!
//! Invariants
//! - A guarded route contacts its upstream only after its guard has approved the request.
//! - If the session service is unreachable, the edge answers 503 and changes no cookie.
//! - Only the session decides, or an access token on routes that accept one. No header ever skips a guard.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use session_proto::v1::ErrorReason;
use session_proto::v1::session::State;

use super::authorized::{RequestCredentials, RequestHead};
use super::decision::{self, AskedRequest};
use super::{bearer, cross_site, refusal};
use crate::gateway::Gateway;
use crate::http::errors::HttpError;
use crate::http::request;
use crate::route_table::principal::Principal;
use crate::route_table::requirements::Requirements;
use crate::route_table::unmet_requirement::UnmetRequirement;
use crate::route_table::{Guard, Route};
use crate::sessions::device_binding::DeviceStanding;
use crate::sessions::{CachedToken, CurrentSession, SessionUse, TokenFor};
use crate::sign_in::pending::reminders::Reminder;

/// Authorizes a request, or answers it.
pub(super) async fn authorize(
    gateway: &Gateway,
    route: &Route,
    request: &RequestHead<'_>,
) -> Result<RequestCredentials, Response> {
    let client = (&request.parts.headers, request::peer(&request.parts.extensions));
    check_network(gateway, &route.requirements, client).map_err(HttpError::into_response)?;
    if let Some(rule) = &route.bearer {
        let site = gateway.sites.of(&request.parts.headers);
        let origin = &site.at("");
        let presentation = bearer::Presentation {
            gateway,
            route,
            rule,
            client,
            method: request.parts.method.as_str(),
            origin,
            audience_origin: origin,
            path: request.parts.uri.path(),
            publisher: Some(site),
        };
        if let Some(token) = bearer::authorize(&presentation).await? {
            let decided = decide(gateway, route, request, (&*token).into()).await;
            decided.map_err(HttpError::into_response)?;
            return Ok(RequestCredentials::by_token(token));
        }
    }
    if route.guard == Guard::Open || cross_site::is_preflight(route, request) {
        return Ok(RequestCredentials::default());
    }
    let without_session = || refusal::refuse(gateway, route, request, None, UnmetRequirement::Session);
    let base = &gateway.sites.of(&request.parts.headers).base_url;
    if !cross_site::is_own(route, request, base) {
        // A program without a token needs the challenge. There is no cookie that a page could misuse.
        if bearer::other_origins_may_read(gateway, route, &request.parts.headers) {
            return Err(without_session());
        }
        return Err(HttpError::Csrf.into_response());
    }
    let current = session(gateway, client, route.rolls, false).await;
    let current = current.map_err(HttpError::into_response)?;
    let Some(current) = current else {
        return Err(without_session());
    };
    let refused = |missing| refusal::refuse(gateway, route, request, Some(&current.session), missing);
    let access_token = check_requirements(gateway, route, &request.parts.headers, &current)
        .await
        .map_err(refused)?;
    decide(gateway, route, request, (&*current.session).into())
        .await
        .map_err(|failure| refused(UnmetRequirement::NotBySignIn(failure)))?;
    Ok(RequestCredentials {
        access_token: access_token.filter(|_| route.requirements.access_token),
        current: Some(current),
        bearer: None,
    })
}

/// Asks the decision point of the route, if it has one.
async fn decide(
    gateway: &Gateway,
    route: &Route,
    request: &RequestHead<'_>,
    who: Principal<'_>,
) -> Result<(), HttpError> {
    let Some(rule) = &route.requirements.decision else {
        return Ok(());
    };
    let (headers, peer) = (&request.parts.headers, request::peer(&request.parts.extensions));
    let asked = AskedRequest {
        method: Some(&request.parts.method),
        origin: &gateway.sites.of(headers).at(""),
        path: request.parts.uri.path(),
        client: gateway.trusted_proxies.client_address(peer, headers),
    };
    // A future of its own, so that other routes do not carry its size.
    Box::pin(decision::ask(gateway, (route, rule), who, asked)).await
}

/// Checks that the client's network may pass.
pub(super) fn check_network(
    gateway: &Gateway,
    requirements: &Requirements,
    (headers, peer): (&HeaderMap, IpAddr),
) -> Result<(), HttpError> {
    requirements.check_network(gateway.trusted_proxies.client_address(peer, headers))
}

/// The session of a request, and whether the request counts as use. A late answer never rotates the cookie.
pub(super) async fn session(
    gateway: &Gateway,
    (headers, peer): (&HeaderMap, IpAddr),
    counts: bool,
    is_late: bool,
) -> Result<Option<CurrentSession>, HttpError> {
    let device = || gateway.device(headers, peer);
    let use_ = match (counts, is_late) {
        (false, _) => SessionUse::LookOnly,
        (true, false) => SessionUse::Counts(&device),
        (true, true) => SessionUse::CountsAndIsAnsweredLate(&device),
    };
    let current = gateway.sessions.current(headers, use_).await;
    current.map_err(|error| HttpError::session_service_down(&error, "the session could not be read"))
}

/// Checks a session against the requirements of a route. Returns the access token if the route requires one.
pub(super) async fn check_requirements(
    gateway: &Gateway,
    route: &Route,
    headers: &HeaderMap,
    current: &CurrentSession,
) -> Result<Option<Arc<CachedToken>>, UnmetRequirement> {
    check_sign_in(gateway, &route.requirements, headers, current)?;
    if route.requirements.device_bound && current.device != DeviceStanding::Proven {
        return Err(UnmetRequirement::Device);
    }
    if route.requirements.needs_token() {
        token(gateway, current, &route.requirements.token).await.map(Some)
    } else {
        Ok(None)
    }
}

/// Whether a session needs no new sign-in and meets the requirements. Requests a useless sign-in only once.
pub(super) fn check_sign_in(
    gateway: &Gateway,
    requirements: &Requirements,
    headers: &HeaderMap,
    current: &CurrentSession,
) -> Result<(), UnmetRequirement> {
    let session = &current.session;
    let checked = requirements.check_all(session, gateway.clock.now_ms(), &gateway.providers);
    checked.map_err(|missing| {
        let requirements = requirements.with_sign_in_demand(Some(session));
        let was_requested = missing.is_of_sign_in()
            && gateway
                .pending
                .is_reminded(headers, Reminder::Unmet(&requirements.unmet_key(&current.id)));
        if was_requested {
            missing.after_sign_in(session, &requirements)
        } else {
            missing
        }
    })
}

/// The access token of a session for this purpose.
pub(super) async fn token(
    gateway: &Gateway,
    current: &CurrentSession,
    wanted: &TokenFor,
) -> Result<Arc<CachedToken>, UnmetRequirement> {
    if current.session.state() == State::NeedsSignIn {
        return Err(UnmetRequirement::Token(ErrorReason::ErrFailedRefreshGrant));
    }
    let error = match gateway.sessions.access_token(&current.id, wanted).await {
        Ok(granted) => return Ok(granted),
        Err(error) => error,
    };
    let reason = error.reason;
    let failure = match reason {
        // The provider gives this session no such token, however often its user signs in.
        ErrorReason::ErrProviderUnavailable
        | ErrorReason::ErrInsufficientScope
        | ErrorReason::ErrInvalidTarget
        | ErrorReason::ErrFailedTokenExchange
        | ErrorReason::ErrMissingRefreshToken
        | ErrorReason::ErrInvalidArgument => HttpError::by_session_service(&error),
        _ if error.is_unavailable() => HttpError::SessionServiceDown,
        // The session ended meanwhile.
        ErrorReason::ErrMissingSession => return Err(UnmetRequirement::Session),
        // Missing, expired or rejected: a new sign-in brings a token.
        _ => return Err(UnmetRequirement::Token(reason)),
    };
    if reason != ErrorReason::ErrInsufficientScope {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "a required access token is not available"
        );
    }
    Err(UnmetRequirement::NotBySignIn(failure))
}
