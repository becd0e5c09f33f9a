//! Signing in and out: login, callback, logout, and what the provider says behind the browser's back.
//!
//! Deliberately absent: routing (`routes.rs`) and everything about requests of people who are already signed in.

mod answer;
pub mod back_channel;
pub mod background;
pub mod callback;
mod claim;
pub mod front_channel;
pub mod login;
pub mod logout;
mod new_session;
pub mod pending;
pub mod redeemed;
pub mod rejected;
pub mod transaction;
pub mod user;
pub mod wishes;

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::app::Edge;
use crate::http::errors::Failure;
use crate::http::pages;
use crate::http::protect::slow_client;
use crate::values::return_to::ReturnTo;
use crate::providers::sites::Site;

/// What loads an address without visiting it starts and finishes no sign-in.
const NOT_A_VISIT: Failure = Failure::Forbidden {
    code: "not_a_navigation",
    words: "Signing in needs a visit to this address, not a request in the background.",
};

/// How long a form may take to arrive: a few kilobytes over the slowest link.
const FORM_PATIENCE: Duration = Duration::from_secs(10);

/// Whether the body says it is a plain form.
fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Reads a form's body as text, at most `limit` bytes of it.
async fn form(body: Body, limit: usize) -> Result<String, Failure> {
    let read = tokio::time::timeout(FORM_PATIENCE, to_bytes(body, limit)).await;
    let bytes = read.map_err(|_late| Failure::BadRequest("The request's body did not arrive in time."))?;
    let bytes = bytes.map_err(|error| slow_client::unread(&error))?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Failure::BadRequest("The request's body is not UTF-8."))
}

/// The redirect to where a visitor wanted to go, with cookies. After a POST it is 303, so that nothing is posted again
/// (RFC 9700, section 4.12). With a strict session cookie it is a page that goes there by itself: a redirect still counts
/// as caused by the provider's site, and the browser would leave the new cookie out.
fn landing<const N: usize>(
    edge: &Edge,
    site: &Site,
    method: &Method,
    return_to: Option<&ReturnTo>,
    cookies: [Option<HeaderValue>; N],
) -> Response {
    let base = ReturnTo::base(site.base_url());
    let target = return_to.unwrap_or(&base).as_str();
    let mut response = if edge.settings.strict_cookie() {
        pages::onward(target)
    } else if *method == Method::POST {
        StatusCode::SEE_OTHER.into_response()
    } else {
        StatusCode::FOUND.into_response()
    };
    if response.status().is_redirection()
        && let Ok(location) = HeaderValue::try_from(target)
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    let headers = response.headers_mut();
    for cookie in cookies.into_iter().flatten() {
        headers.append(header::SET_COOKIE, cookie);
    }
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
