//! `BrowserSessionService` over gRPC-Web.

use axum::Router;

use crate::edge::Edge;

/// Its routes.
pub fn routes(_edge: &Edge) -> Router<Edge> {
    Router::new()
}
