//! Rejects requests that a page of another site makes a browser send to a guarded route with its cookie.
//!
//! Invariant: only requests that change nothing pass without a proof of origin. A preflight passes without a
//! session. Deliberately absent: `SameSite`, which is configurable and compares sites, not origins.

use axum::http::{HeaderMap, Method, header};
use url::{Url, form_urlencoded};

use super::authorized::RequestHead;
use super::headers::is_method_override;
use crate::http::protect::csrf::{self, Provenance, provenance_or_referer};
use crate::route_table::{Csrf, Route};
use crate::values::header_name::folded;

/// A preflight: whether a script of another origin may send a request (Fetch, section 4.8). A preflight has
/// no credentials and no body; one that has is checked like any other request.
pub(super) fn is_preflight(route: &Route, request: &RequestHead<'_>) -> bool {
    is_preflight_head(&request.parts.method, &request.parts.headers)
        && !request.has_body
        && !request.is_websocket
        && !is_overridden(route, request)
}

/// [`is_preflight`] for a request that another proxy describes to the check.
pub(super) fn is_checked_preflight(method: Option<&Method>, headers: &HeaderMap, url: &str) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    let has_body =
        length.is_some_and(|length| length != "0") || headers.contains_key(header::TRANSFER_ENCODING);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    method.is_some_and(|method| is_preflight_head(method, headers))
        && !has_body
        && !headers.contains_key(header::SEC_WEBSOCKET_VERSION)
        && !names_other_method(headers, query)
}

fn is_preflight_head(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether the request changes nothing, or has the proof of origin that the route requires.
pub(super) fn is_own(route: &Route, request: &RequestHead<'_>, base: &Url) -> bool {
    let required = route.csrf;
    if required == Csrf::None || !changes_something(route, request) {
        return true;
    }
    // A script cannot add a header to a WebSocket; browsers always send its origin.
    let proves =
        required == Csrf::Origin || request.is_websocket || request.parts.headers.contains_key(csrf::HEADER);
    proves && provenance_or_referer(&request.parts.headers, base) != Provenance::Foreign
}

/// Whether a page of another origin could do harm with the browser's cookie: by an unsafe method or a WebSocket. No
/// other browser rule stops a WebSocket.
fn changes_something(route: &Route, request: &RequestHead<'_>) -> bool {
    !request.parts.method.is_safe() || request.is_websocket || is_overridden(route, request)
}

/// Whether the request names a second method that the application of this route could obey.
fn is_overridden(route: &Route, request: &RequestHead<'_>) -> bool {
    route.guards_method_override
        && names_other_method(
            &request.parts.headers,
            request.parts.uri.query().unwrap_or_default(),
        )
}

fn names_other_method(headers: &HeaderMap, query: &str) -> bool {
    let by_header = headers.iter().any(|(name, value)| {
        is_method_override(&folded(name.as_str())) && names_change(&String::from_utf8_lossy(value.as_bytes()))
    });
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    by_header || parameters.any(|(name, value)| is_method_parameter(&name) && names_change(&value))
}

/// Whether frameworks read this name as `_method`: PHP also accepts `.method` and ` method`.
fn is_method_parameter(name: &str) -> bool {
    let name = name.trim_start();
    name.len() == METHOD_PARAMETER.len() && folded(&name.to_ascii_lowercase()) == folded(METHOD_PARAMETER)
}

/// The query parameter that names another method.
const METHOD_PARAMETER: &str = "_method";

fn names_change(method: &str) -> bool {
    let safe = ["GET", "HEAD", "OPTIONS"];
    !safe.iter().any(|safe| method.trim().eq_ignore_ascii_case(safe))
}
