//! Finds the rule (`[[check]]`) for the request that another proxy asks about.
//!
//! Invariants
//! - If there are rules, a request passes only if a trusted proxy describes it and a rule matches.
//! - If rules name methods, a request with a method-override header does not pass.

use std::sync::Arc;

use axum::http::{HeaderMap, Method};

use crate::gateway::Gateway;
use crate::gateway::headers::overrides_method;
use crate::http::errors::HttpError;
use crate::route_table::{Route, RouteTable};
use crate::values::forwarded::{self, OriginalRequest};
use crate::values::path::RequestPath;

/// The request is unknown, or no rule matches.
const UNKNOWN_REQUEST: HttpError = HttpError::Forbidden {
    code: "no_check",
    words: "No rule of this site says who may open this address.",
};

/// The application could use another method than the one the edge has checked.
const OTHER_METHOD: HttpError = HttpError::Forbidden {
    code: "method_override",
    words: "A header of this request names another method. Send the request by that method.",
};

/// A rule, with the target of the request.
pub(super) struct CheckRule {
    /// The rule.
    pub(super) route: Arc<Route>,
    /// Scheme, host and port that the browser requested: the audience of assertions.
    pub(super) origin: String,
    /// The application's origin in the audience of clients' own tokens: the request's scheme and the rule's host. The
    /// client chooses the host and port of its request, so they must not decide the audience.
    pub(super) resource_origin: String,
    /// The path that the browser requested, as received.
    pub(super) path: String,
}

impl CheckRule {
    /// Whether the application must not receive the client's own access token.
    pub(super) fn ends_tokens(&self) -> bool {
        let bearer = self.route.bearer.as_ref();
        bearer.is_some_and(|rule| !rule.pass_authorization)
    }
}

/// The rule for the original request; `None` if no rules are configured.
pub(super) fn find(
    gateway: &Gateway,
    headers: &HeaderMap,
    original: &OriginalRequest,
) -> Result<Option<CheckRule>, HttpError> {
    if gateway.routes.with(|table| table.checks.all().is_empty()) {
        return Ok(None);
    }
    let Some(url) = &original.url else {
        tracing::warn!(
            "a check is rejected: no proxy of EDGE_TRUSTED_PROXIES sent the requested address, which selects the [[check]]"
        );
        return Err(UNKNOWN_REQUEST);
    };
    if gateway.routes.with(|table| table.checks_by_method) && overrides_method(headers) {
        tracing::info!(
            "a check is rejected: [[check]] depends on the method, and a header names another method"
        );
        return Err(OTHER_METHOD);
    }
    match by_url(gateway, url, original.method.as_ref()) {
        Some(rule) => Ok(Some(rule)),
        None => {
            tracing::info!(
                "a check is rejected: no [[check]] matches its address, or the address can be read in more than one way"
            );
            Err(UNKNOWN_REQUEST)
        }
    }
}

fn by_url(gateway: &Gateway, url: &str, method: Option<&Method>) -> Option<CheckRule> {
    let (scheme, authority, target) = forwarded::parts(url)?;
    let path = target.split('?').next().filter(|path| !path.contains('#'))?;
    let came = if path.is_empty() { "/" } else { path };
    let path = RequestPath::read(came).ok()?;
    let find = |table: &RouteTable| table.find_check(authority, method, &path);
    let route = gateway.routes.with(find).route()?;
    Some(CheckRule {
        resource_origin: origin(scheme, route.host_named_by(authority).unwrap_or(authority)),
        route,
        origin: origin(scheme, authority),
        path: came.to_owned(),
    })
}

/// The origin in the spelling of browsers: lower case, without the scheme's default port.
fn origin(scheme: &str, authority: &str) -> String {
    let plain = format!("{scheme}://{authority}");
    url::Url::parse(&plain).map_or(plain, |url| url.origin().ascii_serialization())
}
