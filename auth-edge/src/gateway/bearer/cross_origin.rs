//! Which of the edge's own answers a browser client at another origin (Swagger UI, MCP) may read.
//!
//! Invariant: never the answer to a request with a session cookie, and no answer allows credentials.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use crate::gateway::Gateway;
use crate::route_table::Route;
use crate::sessions::cookies::pairs;

/// The headers such a client needs: where to get a token, the nonce, when to retry, what to report.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id");

/// Whether the route accepts tokens and the request has no session cookie.
pub(in crate::gateway) fn other_origins_may_read(
    gateway: &Gateway,
    route: &Route,
    headers: &HeaderMap,
) -> bool {
    route.bearer.is_some() && !pairs(headers).any(|(name, _)| gateway.cookies.owns(name))
}

/// Lets scripts of any origin read an error answer. The upstream decides about its own answers.
pub(in crate::gateway) fn let_other_origins_read(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}
