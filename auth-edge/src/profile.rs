//! The profile route: who is signed in, as JSON.
//!
//! Invariants: no session is 204 without a body; a refetch that fails changes nothing; no token is ever part of the answer.
//! Deliberately absent: claims the session does not hold.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use oidc::{Outage, UserinfoError};
use serde_json::{Map, Value};
use session_proto::claims;
use session_proto::client::SessionError;
use session_proto::v1::{ErrorReason, Session};

use crate::edge::Edge;
use crate::errors::{Failure, Handler};
use crate::observe::Handle;
use crate::request;
use crate::sessions::{CurrentSession, Known};
use crate::settings::ProfileRefetch;
use crate::sign_in::login::no_content;
use crate::sign_in::user::user;

/// About as many headers an answer gets.
const HEADERS: usize = 12;

/// How often a merge is tried again when the session changes meanwhile.
const MERGES: usize = 3;

/// GET counts as use and rolls the session, unless `roll=false` says that nobody is there; HEAD never does.
pub async fn handle(State(edge): State<Edge>, request: Request) -> Result<Response, Failure> {
    let (head, _) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    let polled =
        head.method == Method::HEAD || request::first_parameter(query, "roll").is_some_and(|v| v == "false");
    let device = || edge.device(&head.headers, request::peer(&head.extensions));
    let current = edge
        .sessions
        .current(&head.headers, (!polled).then_some(&device))
        .await
        .map_err(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "profile not available");
            Failure::SessionServiceDown
        })?;
    let Some(mut current) = current else {
        return Ok(no_content());
    };
    let asked = request::first_parameter(query, "refetch").is_some_and(|value| value == "true");
    let refetch = match edge.settings.profile_refetch {
        ProfileRefetch::Never => false,
        ProfileRefetch::OnRequest => asked && head.method == Method::GET,
        ProfileRefetch::Always => head.method == Method::GET,
    };
    if refetch {
        match refetched(&edge, &current).await {
            Ok(session) => current.session = Known::new(session),
            // The session ended meanwhile: the answer is that of no session.
            Err(Failure::Session {
                reason: ErrorReason::ErrMissingSession,
                ..
            }) => return Ok(no_content()),
            Err(failure) => return Err(failure),
        }
    }
    Ok(answer(&edge, current))
}

fn answer(edge: &Edge, current: CurrentSession) -> Response {
    let mut response = Response::new(current.session.user_json().into());
    let headers: &mut HeaderMap = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(analytics) = &edge.analytics {
        analytics.tell(headers, &edge.keys, &current.session);
    }
    if let Some(cookie) = current.set_cookie {
        headers.append(header::SET_COOKIE, cookie);
    }
    response
        .extensions_mut()
        .insert(Handle(current.session.handle.clone()));
    response
}

/// Reads userinfo with a valid access token, merges it over the user and saves the merge.
async fn refetched(edge: &Edge, current: &CurrentSession) -> Result<Session, Failure> {
    let Some(provider) = edge.providers.of_session(&current.session.issuer) else {
        tracing::warn!(
            issuer = current.session.issuer,
            "profile not read anew: the provider is not configured"
        );
        return Err(Failure::Provider(Handler::Profile, Outage::BadAnswer));
    };
    let token = edge
        .sessions
        .access_token(&current.id, Vec::new())
        .await
        .map_err(told)?;
    let userinfo = provider
        .party
        .userinfo(
            &token.token_type,
            token.value.expose(),
            &current.session.subject,
            edge.clock.now_ms() / 1000,
        )
        .await
        .map_err(userinfo_failed)?;
    let mut session = Session::clone(&current.session);
    let mut tries = 0;
    loop {
        let merged = merge(edge, &session, userinfo.clone());
        match edge
            .sessions
            .update_user(&current.id, &merged, session.version)
            .await
        {
            Ok(session) => return Ok(session),
            Err(error) if error.reason == ErrorReason::ErrStaleVersion && tries < MERGES => {
                tries += 1;
                session = *edge.sessions.get(&current.id).await.map_err(told)?;
            }
            Err(error) => return Err(told(error)),
        }
    }
}

fn merge(edge: &Edge, session: &Session, userinfo: Map<String, Value>) -> Map<String, Value> {
    let kept = session.user.as_ref().map(claims::from_struct).unwrap_or_default();
    user(kept, Some(userinfo), &edge.settings.claim_filter)
}

fn told(error: SessionError) -> Failure {
    tracing::warn!(error = &error as &dyn std::error::Error, "profile not read anew");
    Failure::Session {
        reason: error.reason,
        scopes: None,
        handler: Some(Handler::Profile),
    }
}

fn userinfo_failed(error: UserinfoError) -> Failure {
    tracing::warn!(error = &error as &dyn std::error::Error, "profile not read anew");
    let outage = match &error {
        UserinfoError::Provider(error) => error.outage(),
        UserinfoError::Token(oidc::IdTokenError::Provider(error)) => error.outage(),
        UserinfoError::Token(oidc::IdTokenError::UnknownKey) => Outage::Unreachable,
        UserinfoError::Unauthorized
        | UserinfoError::Subject
        | UserinfoError::Malformed
        | UserinfoError::Token(_) => Outage::BadAnswer,
    };
    Failure::Provider(Handler::Profile, outage)
}
