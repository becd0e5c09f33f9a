//! The profile route: who is signed in, as JSON.
//!
//! Invariants
//! - Without a session the answer is 204 without a body.
//! - A failed refetch changes nothing.
//! - A session beyond its refetch limit receives the stored profile.
//! - No token is ever part of the answer.
//!
//! Deliberately absent: claims the session does not hold.

pub(crate) mod refetch;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use session_proto::v1::ErrorReason;

use self::refetch::ProfileRefetch;
use crate::browser::Browser;
use crate::http::errors::HttpError;
use crate::http::no_content;
use crate::http::observe::SessionHandle;
use crate::http::request;
use crate::sessions::{CachedSession, CurrentSession, SessionUse};

/// GET counts as use and rolls the session, except with `roll=false` (the user is away). HEAD never rolls it.
pub(crate) async fn handle(
    State(browser): State<Arc<Browser>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, _) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    let polled =
        head.method == Method::HEAD || request::first_parameter(query, "roll").is_some_and(|v| v == "false");
    let device = || browser.device(&head.headers, request::peer(&head.extensions));
    let use_ = if polled {
        SessionUse::LookOnly
    } else {
        SessionUse::Counts(&device)
    };
    let current = browser
        .sessions
        .current(&head.headers, use_)
        .await
        .map_err(|error| HttpError::session_service_down(&error, "profile not available"))?;
    let Some(mut current) = current else {
        return Ok(no_content());
    };
    let requested = request::first_parameter(query, "refetch").is_some_and(|value| value == "true");
    let is_due = match browser.profile_refetch {
        ProfileRefetch::Never => false,
        ProfileRefetch::OnRequest => requested && head.method == Method::GET,
        ProfileRefetch::Always => head.method == Method::GET,
    };
    let has_bucket = || {
        let (limit, handle) = (&browser.refetch_limit, current.session.handle.as_str());
        limit.check(handle, browser.clock.now_ms()).is_ok()
    };
    if is_due && has_bucket() {
        match refetch::refetch(&browser, &current).await {
            Ok(session) => current.session = CachedSession::new(session),
            // The session ended meanwhile: answer as without a session.
            Err(HttpError::Session {
                reason: ErrorReason::ErrMissingSession,
                ..
            }) => return Ok(no_content()),
            Err(failure) => return Err(failure),
        }
    }
    let cookie = browser.sessions.cookie_if_alive(&current).await;
    Ok(answer(&browser, current, cookie))
}

fn answer(browser: &Browser, current: CurrentSession, cookie: Option<HeaderValue>) -> Response {
    let mut response = Response::new(current.session.user.clone().into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(analytics) = &browser.analytics {
        analytics.add_headers(headers, &browser.keys, &current.session);
    }
    if let Some(cookie) = cookie {
        headers.append(header::SET_COOKIE, cookie);
    }
    response
        .extensions_mut()
        .insert(SessionHandle(current.session.handle.clone()));
    response
}
