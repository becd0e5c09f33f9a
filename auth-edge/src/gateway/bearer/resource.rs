//! A protected resource: what clients know a route with `bearer` by, and the metadata by which they find out where to get a
//! token for it (RFC 9728).
//!
//! Invariant: the metadata of a route says nothing a challenge of its guard would not say to a stranger.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::gateway::{self, Gateway};
use crate::http::errors::HttpError;
use crate::providers::sites::Site;
use crate::route_table::bearer::BearerRule;
use crate::route_table::{Match, Route};
use crate::values::path::RequestPath;
use crate::values::reserved::RESOURCE_METADATA_PATH;

/// How long clients may keep the metadata: a changed route table is told within it.
const METADATA_MAX_AGE: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// How many segments of a metadata path come before the resource's own.
const METADATA_SEGMENTS: usize = 2;

/// What clients know a resource by.
#[derive(Clone, Debug)]
pub(in super::super) struct Resource {
    /// Its identifier: scheme, host, port, and the path of the rule.
    pub(super) url: String,
    metadata_url: Option<String>,
}

impl Resource {
    /// The resource of a rule, at this address of the product.
    pub(in super::super) fn at(site: &Site, rule: &BearerRule) -> Self {
        Self {
            url: site.at(&rule.resource_path),
            metadata_url: Some(site.at(&format!("{RESOURCE_METADATA_PATH}{}", rule.resource_path))),
        }
    }

    /// That of a rule for what another proxy asks about, at the address its application is known by. Whoever serves that
    /// address publishes its metadata.
    pub(in super::super) fn elsewhere(origin: &str, rule: &BearerRule) -> Self {
        Self {
            url: format!("{origin}{}", rule.resource_path),
            metadata_url: None,
        }
    }

    /// Where its metadata is, if we publish it (RFC 9728 section 3.1).
    pub(super) fn metadata_url(&self) -> Option<String> {
        self.metadata_url.clone()
    }
}

/// Answers for the metadata of a route with `bearer`; what else lies below the path is the route table's, like every other.
pub(crate) async fn metadata(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    match route_of(&gateway, &request) {
        Some(route) => document(&gateway, &route, &request),
        None => gateway::handle(State(gateway), request).await,
    }
}

/// The route with `bearer` that a metadata path is about.
fn route_of(gateway: &Gateway, request: &Request) -> Option<Arc<Route>> {
    let path = RequestPath::parse(request.uri().path()).ok()?;
    let resource = RequestPath::parse(&path.to_encoded(METADATA_SEGMENTS)).ok()?;
    let by = |method| {
        let host = || gateway.sites.of(request.headers()).host();
        match gateway.routes.find(method, &resource, host) {
            Match::Route(route) => route.bearer.is_some().then_some(route),
            Match::Ambiguous | Match::OtherMethods(_) | Match::Nothing => None,
        }
    };
    // Where rules tell methods apart, that of reading; else that of calling.
    by(&Method::GET).or_else(|| by(&Method::POST))
}

fn document(gateway: &Gateway, route: &Route, request: &Request) -> Response {
    let Some(rule) = &route.bearer else {
        return HttpError::NotFound.into_response();
    };
    let mut response = match *request.method() {
        Method::GET | Method::HEAD => {
            let site = gateway.sites.of(request.headers());
            let kind = HeaderValue::from_static("application/json");
            let kept = [
                (header::CONTENT_TYPE, kind),
                (header::CACHE_CONTROL, METADATA_MAX_AGE),
            ];
            (kept, members(gateway, route, rule, site).to_string()).into_response()
        }
        // Clients in browsers add headers of their own, and ask before they do.
        Method::OPTIONS => {
            let allowed = HeaderValue::from_static("GET, HEAD");
            let any = HeaderValue::from_static("*");
            let said = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, allowed),
                (header::ACCESS_CONTROL_ALLOW_HEADERS, any),
            ];
            (StatusCode::NO_CONTENT, said).into_response()
        }
        _ => return HttpError::MethodNotAllowed("GET, HEAD, OPTIONS".into()).into_response(),
    };
    // It is for everybody's eyes, and a client in a browser is of another origin.
    let any = HeaderValue::from_static("*");
    response
        .headers_mut()
        .insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    response
}

/// The members of RFC 9728 section 2 that say something here.
fn members(gateway: &Gateway, route: &Route, rule: &BearerRule, site: &Site) -> Value {
    let counts = |issuer: &str, id: &str| {
        site.owner().is_none_or(|owner| owner.issuer == issuer)
            && route
                .requirements
                .connection
                .as_ref()
                .is_none_or(|named| named == id)
    };
    let providers = gateway.providers.all().iter();
    let issuers: Vec<&str> = providers
        .filter(|provider| counts(provider.issuer(), &provider.id))
        .map(|provider| provider.issuer())
        .collect();
    let mut members = json!({
        "resource": Resource::at(site, rule).url,
        "authorization_servers": issuers,
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": super::proof_algorithms(),
        "dpop_bound_access_tokens_required": rule.dpop_required,
    });
    if !rule.scopes.is_empty() {
        members["scopes_supported"] = json!(rule.scopes);
    }
    members
}
