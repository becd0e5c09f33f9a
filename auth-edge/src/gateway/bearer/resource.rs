//! A protected resource: the identifier of a route with `bearer`, and the metadata that tell clients where to
//! get a token for it (RFC 9728).
//!
//! Invariants
//! - The metadata reveal no more than a challenge of the route's guard reveals to an anonymous client.
//! - The metadata name the requested URL (RFC 9728 section 3.3), and a token for it passes. If the rule has an
//!   audience, they name the audience instead, and only a token for the audience passes.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::challenges::{proof_algorithms, url_at};
use crate::gateway::{self, Gateway};
use crate::http::errors::HttpError;
use crate::providers::sites::Site;
use crate::route_table::bearer::BearerRule;
use crate::route_table::{Route, RouteQuery};
use crate::values::path::RequestPath;

/// How long clients may cache the metadata, and thus keep using an outdated route table.
const METADATA_MAX_AGE: &str = "public, max-age=300";

/// The segments of a metadata path before the resource's own.
const METADATA_SEGMENTS: usize = 2;

/// Answers with the metadata of a route with `bearer`. Other paths below the prefix follow the route table.
pub(crate) async fn metadata(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    match route_of(&gateway, &request) {
        Some((route, path)) => document(&gateway, &route, &path, &request),
        None => gateway::handle(State(gateway), request).await,
    }
}

/// The route with `bearer` that a metadata path names, and the path of the resource.
fn route_of(gateway: &Gateway, request: &Request) -> Option<(Arc<Route>, String)> {
    let path = RequestPath::parse(request.uri().path()).ok()?;
    let path = path.to_encoded(METADATA_SEGMENTS);
    let resource = RequestPath::parse(&path).ok()?;
    let by = |method| {
        let requested = RouteQuery {
            host: gateway.sites.of(request.headers()).host(),
            method,
            path: &resource,
        };
        let found = gateway.routes.with(|table| table.routes.find(requested));
        found.route().filter(|route| route.bearer.is_some())
    };
    // If rules differ by method, take the rule for GET, else the rule for POST.
    let route = by(&Method::GET).or_else(|| by(&Method::POST))?;
    Some((route, path))
}

fn document(gateway: &Gateway, route: &Route, path: &str, request: &Request) -> Response {
    let Some(rule) = &route.bearer else {
        return HttpError::NotFound.into_response();
    };
    // The metadata are public, and a browser client has another origin.
    let any_origin = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
    match *request.method() {
        Method::GET | Method::HEAD => {
            let site = gateway.sites.of(request.headers());
            let resource = rule.audience.clone().unwrap_or_else(|| url_at(site, path));
            let kept = [(header::CACHE_CONTROL, METADATA_MAX_AGE)];
            (
                any_origin,
                kept,
                Json(members(gateway, route, rule, site, &resource)),
            )
                .into_response()
        }
        // Browser clients add their own headers, and send a preflight first.
        Method::OPTIONS => {
            let allowed = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD"),
                (header::ACCESS_CONTROL_ALLOW_HEADERS, "*"),
            ];
            (StatusCode::NO_CONTENT, any_origin, allowed).into_response()
        }
        _ => HttpError::MethodNotAllowed("GET, HEAD, OPTIONS".into()).into_response(),
    }
}

/// The members of RFC 9728 section 2 that apply here.
fn members(gateway: &Gateway, route: &Route, rule: &BearerRule, site: &Site, resource: &str) -> Value {
    let counts = |issuer: &str, id: &str| {
        site.owner.as_ref().is_none_or(|owner| owner == issuer)
            && route
                .requirements
                .connection
                .as_ref()
                .is_none_or(|named| named == id)
    };
    let providers = gateway.providers.all.iter();
    let issuers: Vec<&str> = providers
        .filter(|provider| counts(provider.issuer(), &provider.id))
        .map(|provider| provider.issuer())
        .collect();
    let mut members = json!({
        "resource": resource,
        "authorization_servers": issuers,
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": proof_algorithms(),
        "dpop_bound_access_tokens_required": rule.dpop_required,
    });
    if !rule.scopes.is_empty() {
        members["scopes_supported"] = json!(rule.scopes);
    }
    members
}
