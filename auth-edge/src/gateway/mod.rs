//! What lies behind the edge: guards, upstreams, forward auth.

pub mod path;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};

use crate::edge::Edge;
use crate::errors::Failure;

/// Forward auth.
pub mod check {
    use axum::extract::State;

    use crate::edge::Edge;
    use crate::errors::Failure;

    /// Answers a proxy that asks whether a request may pass.
    pub async fn handle(State(_edge): State<Edge>) -> Failure {
        Failure::NotFound
    }
}

/// Answers what is none of the edge's own routes.
pub async fn handle(State(_edge): State<Edge>, _request: Request) -> Response {
    Failure::NotFound.into_response()
}
