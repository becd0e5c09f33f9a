//! Which rule (`[[check]]`) is for the request that another proxy asks about.
//!
//! Invariants
//! - If there are such rules, a request that none of them answers does not pass, nor one that no trusted proxy describes.
//! - If rules name methods, a request with another method in a header does not pass: the application may act by it.

use std::sync::Arc;

use axum::http::{HeaderMap, Method};

use crate::gateway::Gateway;
use crate::gateway::headers::overrides_method;
use crate::http::errors::HttpError;
use crate::route_table::{Route, RouteTable};
use crate::values::forwarded::{self, OriginalRequest};
use crate::values::path::RequestPath;

/// The request is not known, or no rule is for it.
const UNKNOWN_REQUEST: HttpError = HttpError::Forbidden {
    code: "no_check",
    words: "No rule of this site says who may come to this address.",
};

/// The application could act by another method than the one that is judged.
const OTHER_METHOD: HttpError = HttpError::Forbidden {
    code: "method_override",
    words: "A header of this request names another method. Send the request by that method.",
};

/// A rule, and where the request it is for goes.
pub(super) struct CheckRule {
    /// The rule.
    pub(super) route: Arc<Route>,
    /// Scheme, host and port that the browser requested: the application, to which assertions are addressed.
    pub(super) origin: String,
    /// What clients with tokens of their own know the application by: its scheme, and the host as the rule names it. What a
    /// request says of host and port is its client's to choose, and with it would be the audience.
    pub(super) resource_origin: String,
    /// The path the browser requested, as it came.
    pub(super) path: String,
}

impl CheckRule {
    /// Whether a client's own access token is not for the application.
    pub(super) fn ends_tokens(&self) -> bool {
        let bearer = self.route.bearer.as_ref();
        bearer.is_some_and(|rule| !rule.pass_authorization)
    }
}

/// The rule for the request that is asked about; `None` where there are no such rules.
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
            "a check does not pass: no proxy of EDGE_TRUSTED_PROXIES says what was asked for, which [[check]] is chosen by"
        );
        return Err(UNKNOWN_REQUEST);
    };
    if gateway.routes.with(|table| table.checks_by_method) && overrides_method(headers) {
        tracing::info!(
            "a check does not pass: [[check]] tells methods apart, and a header names another one"
        );
        return Err(OTHER_METHOD);
    }
    match by_url(gateway, url, original.method.as_ref()) {
        Some(rule) => Ok(Some(rule)),
        None => {
            tracing::info!(
                "a check does not pass: no [[check]] is for it, or it can be read in more than one way"
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

/// As browsers write it: in lower case, without the scheme's own port.
fn origin(scheme: &str, authority: &str) -> String {
    let plain = format!("{scheme}://{authority}");
    url::Url::parse(&plain).map_or(plain, |url| url.origin().ascii_serialization())
}
