//! The admin listener: `/livez`, `/readyz` and `/metrics` over plain HTTP, for the cluster, not the public.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use prometheus::{Registry, TextEncoder};

use crate::readiness::Readiness;

/// The routes of the admin listener.
pub(crate) fn router(readiness: Readiness, registry: Registry) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(show).with_state(registry))
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    let status = if readiness.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(readiness.report())).into_response()
}

async fn show(State(registry): State<Registry>) -> Result<impl IntoResponse, StatusCode> {
    let text = TextEncoder::new().encode_to_string(&registry.gather());
    let text = text.map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "the metrics cannot be rendered"
        );
        StatusCode::INTERNAL_SERVER_ERROR
    })?;
    Ok(([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text))
}
