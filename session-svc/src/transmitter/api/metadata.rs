//! What everybody may know of us: metadata (SSF 1.0, section 7.1) and keys.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::super::receiver::Delivery;
use super::Api;

/// How the API is protected: bearer tokens (RFC 6750).
const BEARER_TOKENS: &str = "urn:ietf:rfc:6750";

/// How long others may keep metadata and keys.
const KEPT: &str = "max-age=300";

/// The metadata.
pub(super) async fn show(State(api): State<Arc<Api>>) -> Response {
    let at = |name: &str| format!("{}/{name}", api.base);
    public(json!({
        "spec_version": "1_0",
        "issuer": api.context.receivers.issuer,
        "jwks_uri": at("jwks.json"),
        "delivery_methods_supported": [method(true), method(false)],
        "configuration_endpoint": at("streams"),
        "status_endpoint": at("status"),
        "verification_endpoint": at("verification"),
        "authorization_schemes": [{"spec_urn": BEARER_TOKENS}],
        "default_subjects": "ALL",
    }))
}

/// The keys.
pub(super) async fn keys(State(api): State<Arc<Api>>) -> Response {
    public(api.context.receivers.signer.public_jwks())
}

/// How streams name a way of delivery (SSF 1.0, section 6.1).
pub(super) fn method_of(delivery: &Delivery) -> &'static str {
    method(matches!(delivery, Delivery::Push(_)))
}

fn method(is_push: bool) -> &'static str {
    if is_push {
        "urn:ietf:rfc:8935"
    } else {
        "urn:ietf:rfc:8936"
    }
}

fn public(document: Value) -> Response {
    ([(CACHE_CONTROL, KEPT)], Json(document)).into_response()
}
