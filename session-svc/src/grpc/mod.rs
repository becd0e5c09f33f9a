//! The gRPC side: `session.v1.SessionService`, `session.v1.OperatorSessionService`, health and reflection.
//!
//! Invariants: every call has an authorized caller, a deadline, a size limit and one audit record. Every
//! failure carries one `ErrorInfo`. Only the handle of a session appears in logs.
//!
//! Deliberately absent: rules about sessions; the transport (TLS, draining), which is part of chassis.

mod api;
mod arguments;
mod batch;
mod call;
mod call_context;
mod changes;
mod counted_body;
mod deadline;
mod dispatch;
mod endings;
mod health;
mod method;
mod new_session;
mod operator_requests;
mod operators;
mod reading;
mod record;
mod reflection;
mod resource;
mod service;
mod sign_in;
mod status;
mod tokens;
mod watching;

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use session_proto::v1::operator_session_service_server::OperatorSessionServiceServer;
use session_proto::v1::session_service_server::SessionServiceServer;
use tokio_util::sync::CancellationToken;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic_reflection::server::Error;

pub(crate) use api::Api;
pub use call_context::CallContext;
pub use health::Health;
pub use resource::cookie_generation;

use crate::receiver::SignalReceiver;
use crate::sessions::Sessions;

/// The answer to a call on a connection with too much waiting.
pub(crate) fn overloaded() -> Response {
    status::overloaded().into_http()
}

/// The most bytes of a decompressed request: a session's limit and the protocol; other requests are smaller.
const MAX_REQUEST_BYTES: usize = 256 * 1024;

/// The most bytes of an answer: above a page of sessions, the largest session, and all that a watch sends at once.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// All services of the gRPC port, made for each worker, which owns its store connections. `health` answers
/// health checks. Watches end when `shutdown` is cancelled.
///
/// # Errors
/// The built-in descriptors cannot be served.
pub fn routes(
    sessions: Sessions,
    receiver: Option<SignalReceiver>,
    calls: CallContext,
    health: &Health,
    shutdown: CancellationToken,
) -> Result<impl Fn() -> Router + Send + Sync + 'static, Error> {
    // The Python client supports only v1alpha.
    let (v1, v1alpha) = (
        reflection::builder()?.build_v1()?,
        reflection::builder()?.build_v1alpha()?,
    );
    let others = Routes::new(health.service())
        .add_service(
            v1.accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(MAX_REQUEST_BYTES),
        )
        .add_service(
            v1alpha
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(MAX_REQUEST_BYTES),
        );
    let listed = health.clone();
    let list = move |request| listed.clone().list(request);
    let others = others
        .prepare()
        .into_axum_router()
        .route(health::LIST, axum::routing::post(list));
    Ok(move || {
        let api = Api {
            sessions: sessions.for_worker(),
            receiver: receiver.clone(),
            calls: calls.clone(),
            draining: shutdown.clone(),
        };
        let operators = OperatorSessionServiceServer::new(api.clone())
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(MAX_RESPONSE_BYTES);
        let sessions = SessionServiceServer::new(api)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(MAX_RESPONSE_BYTES);
        let services = dispatch::Services {
            calls: calls.clone(),
            sessions,
            operators,
            others: others.clone(),
        };
        Router::new()
            .fallback(dispatch::answer)
            .with_state(Arc::new(services))
    })
}
