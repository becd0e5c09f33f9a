//! The answer to a check that passes: the user's identity and the application's headers.
//!
//! Invariant: the head of an HTTP answer stays within `EDGE_CHECK_HEAD_BYTES`. nginx answers 500 if a head exceeds
//! one buffer. The longest headers are left out first, each whole, and the log names them.

use axum::Extension;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use super::ApplicationHeaders;
use super::rule::CheckRule;
use crate::gateway::authorized::RequestCredentials;
use crate::gateway::claim_headers::OmissionReason;
use crate::gateway::headers::add_identity;
use crate::gateway::identity_headers::{add_assertion, add_claim_headers};
use crate::gateway::{Gateway, assertion};
use crate::http::answer_head;
use crate::http::errors::HttpError;
use crate::route_table::principal::Principal;

/// An assertion's claims may take a quarter of the head: signing and encoding add half of their size.
const ASSERTION_SHARE: usize = 4;

/// The answer with identity, the rule's headers, the access token and the renewed cookie. For a caller inside
/// this process, it also lists the application's headers.
///
/// # Errors
/// The edge cannot sign an assertion that the rule requires.
pub(super) fn answer(
    gateway: &Gateway,
    from_inside: bool,
    rule: Option<&CheckRule>,
    authorized: &RequestCredentials,
    cookie: Option<HeaderValue>,
) -> Result<Response, HttpError> {
    // An answer inside this process is not sent over HTTP, so no limit applies.
    let most = (!from_inside).then_some(gateway.check_head_bytes);
    let mut headers: HeaderMap = cookie
        .map(|cookie| (header::SET_COOKIE, cookie))
        .into_iter()
        .collect();
    add_identity(&mut headers, authorized);
    let mut application = ApplicationHeaders {
        hides_client_token: authorized.bearer.is_some() && rule.is_some_and(CheckRule::ends_tokens),
        headers: Vec::new(),
        names: gateway.routes.with(|table| table.facts.identity_names.clone()),
    };
    if let Some(who) = authorized.principal() {
        let mut offered = HeaderMap::new();
        if let Some(rule) = rule
            && let Some(claims) = &rule.route.upstream_jwt
        {
            let share = most.map(|most| most / ASSERTION_SHARE);
            let claims = (&**claims, share.unwrap_or(assertion::MAX_CLAIMS_BYTES));
            add_assertion(&mut headers, gateway, who, &rule.origin, claims)?;
        }
        let own = rule.map_or(&gateway.check_headers, |rule| &rule.route.headers);
        add_claim_headers(&mut offered, gateway, own, authorized);
        application.headers = offered.keys().cloned().collect();
        let token = authorized.access_token.as_ref();
        let authorization = token.and_then(|token| token.authorization.clone());
        offered.extend(authorization.map(|value| (header::AUTHORIZATION, value)));
        add_what_fits(&mut headers, gateway, most, offered, who);
    }
    let mut response = (headers, Extension(application)).into_response();
    authorized.name_in(&mut response);
    Ok(response)
}

/// Adds headers within the size limit of the head, the shortest first.
fn add_what_fits(
    headers: &mut HeaderMap,
    gateway: &Gateway,
    most: Option<usize>,
    offered: HeaderMap,
    who: Principal<'_>,
) {
    let offered = offered
        .into_iter()
        .filter_map(|(name, value)| Some((name?, value)));
    let mut offered: Vec<(HeaderName, HeaderValue)> = offered.collect();
    offered.sort_by_key(|(_, value)| value.len());
    for (name, value) in offered {
        let line = answer_head::line_bytes(&name, &value);
        if most.is_none_or(|most| line <= answer_head::room_within(most, headers)) {
            headers.insert(name, value);
        } else {
            let (left_out, now_ms) = (&gateway.omitted_header_log, gateway.clock.now_ms());
            left_out.log_omission(&name, None, who, OmissionReason::NoRoom, now_ms);
        }
    }
}
