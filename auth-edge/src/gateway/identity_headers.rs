//! Adds the user's identity for an application.

use axum::http::{HeaderMap, HeaderValue};

use super::assertion::{Assertions, X_AUTH_ASSERTION, passed_on};
use super::authorized::RequestCredentials;
use super::claim_headers::{self, OmissionReason};
use super::state::Gateway;
use crate::http::errors::HttpError;
use crate::route_table::principal::Principal;
use crate::route_table::upstream_headers::UpstreamHeaders;

/// Adds the identity headers of a rule, under the names that its application reads.
pub(super) fn add_claim_headers(
    headers: &mut HeaderMap,
    gateway: &Gateway,
    own: &UpstreamHeaders,
    authorized: &RequestCredentials,
) {
    let principal = authorized.principal().filter(|_| !own.all.is_empty());
    let Some(principal) = principal else {
        return;
    };
    let now_ms = gateway.clock.now_ms();
    let left_out = &gateway.omitted_header_log;
    headers.extend(claim_headers::of(own, principal, left_out, now_ms));
}

/// Adds the assertion that a request acts for this session, for the application at `audience`, with claims
/// within the size limit. The log names the claims that are left out.
///
/// # Errors
/// The edge cannot sign it: the request must not be forwarded without it.
pub(super) fn add_assertion(
    headers: &mut HeaderMap,
    gateway: &Gateway,
    who: Principal<'_>,
    audience: &str,
    (claims, most_bytes): (&[String], usize),
) -> Result<(), HttpError> {
    let now_ms = gateway.clock.now_ms();
    let sign = |assertions: &Assertions| {
        let (claims, left_out) = passed_on(who, claims, most_bytes);
        for claim in left_out {
            let log = &gateway.omitted_header_log;
            log.log_omission(
                &X_AUTH_ASSERTION,
                Some(claim),
                who,
                OmissionReason::TooLong,
                now_ms,
            );
        }
        assertions.sign(who, claims, audience, now_ms / 1_000)
    };
    let value = gateway.assertions.as_ref().and_then(sign);
    match value.and_then(|token| HeaderValue::try_from(token).ok()) {
        Some(mut value) => {
            value.set_sensitive(true);
            headers.insert(X_AUTH_ASSERTION, value);
            Ok(())
        }
        None => {
            tracing::error!(audience, "an assertion cannot be signed");
            Err(HttpError::Internal)
        }
    }
}
