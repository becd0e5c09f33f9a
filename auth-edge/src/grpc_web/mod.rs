//! `BrowserSessionService` over gRPC-Web, on the port of everything else.
//!
//! Invariants: every call comes from our own pages (behaviour, section 8); it acts for the session of the cookie and for its
//! person alone; nobody learns of a token more than its scope and expiry; reading and watching never roll.

mod service;
mod watch;

use axum::Router;
use session_proto::v1::browser_session_service_server::BrowserSessionServiceServer;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;

use self::service::Browser;
use crate::edge::Edge;

/// Requests carry a handle at most; anything larger is not from our pages.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// Its routes.
pub fn routes(edge: &Edge) -> Router<Edge> {
    let service = BrowserSessionServiceServer::new(Browser::new(edge.clone())).max_decoding_message_size(REQUEST_BYTES_MAX);
    // The service alone, without tonic's fallback: what is not its path belongs to the gateway.
    let routes = Routes::default().add_service(service).into_axum_router().reset_fallback().layer(GrpcWebLayer::new());
    routes.with_state(())
}
