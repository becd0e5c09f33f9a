//! What a page of another site can have a browser send to a guarded route, with the cookie the browser adds.
//!
//! Invariant: only what changes nothing passes without a word on where it comes from; a preflight passes without a session
//! because it carries nothing. Deliberately absent: `SameSite`; it is settable, and knows sites, not origins.

use axum::http::{Method, header};
use url::Url;

use super::guard::RequestHead;
use crate::http::protect::csrf::{self, Provenance, provenance_or_referer};
use crate::route_table::Csrf;

/// A browser's question whether a script of another origin may ask (Fetch, section 4.8): it carries no credentials and no
/// body. What calls itself one and carries more is judged like any other request.
pub(super) fn is_preflight(request: &RequestHead<'_>) -> bool {
    request.method == Method::OPTIONS
        && !request.has_body
        && !request.is_websocket
        && request.headers.contains_key(header::ORIGIN)
        && request
            .headers
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether no page of another origin can have sent it, as far as the route requires.
pub(super) fn is_own(required: Csrf, request: &RequestHead<'_>, base: &Url) -> bool {
    if required == Csrf::None || !changes_something(request) {
        return true;
    }
    // A script cannot add a header to a WebSocket; browsers always send its origin.
    let proves =
        required == Csrf::Origin || request.is_websocket || request.headers.contains_key(csrf::HEADER);
    proves && provenance_or_referer(request.headers, base) != Provenance::Foreign
}

/// Whether a page of another origin could do harm with the cookie a browser adds: by a method that changes something, or
/// by a WebSocket, which no other rule of browsers stops.
fn changes_something(request: &RequestHead<'_>) -> bool {
    !request.method.is_safe() || request.is_websocket
}
