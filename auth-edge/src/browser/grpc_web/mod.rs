//! `BrowserSessionService` and [`operators`] over gRPC-Web, on the edge's main port.
//!
//! Invariants
//! - Every call comes from our own pages.
//! - A call of `BrowserSessionService` acts only for the session of the cookie and for its person.
//! - Answers hold the scope and expiry of a token, never the token.
//! - Reading and watching never roll a session.
//! - A call waits for its message no longer than any request waits for its body.

mod caller;
mod operators;
mod service;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use session_proto::error;
use session_proto::v1::ErrorReason;
use session_proto::v1::browser_session_service_server::BrowserSessionServiceServer;
use session_proto::v1::operator_session_service_server::OperatorSessionServiceServer;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;

use self::service::BrowserApi;
use crate::browser::Browser;
use crate::http::errors::{HttpError, Limit};
use crate::http::no_store;
use crate::http::protect::{csrf, slow_client};

/// Requests carry a handle at most. Larger messages, after decompression, are not from our pages.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// The limit of the encoded body: the message with its frame, as base64 text.
const BODY_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// The routes of both services.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(browser: &Arc<Browser>) -> Router<S> {
    let api = Arc::new(BrowserApi {
        browser: browser.clone(),
    });
    let service = BrowserSessionServiceServer::from_arc(api.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(REQUEST_BYTES_MAX);
    let operators = OperatorSessionServiceServer::from_arc(api)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(REQUEST_BYTES_MAX);
    let operators = own_pages_only(Routes::new(operators), browser);
    own_pages_only(Routes::new(service), browser)
        .merge(operators.layer(from_fn_with_state(browser.clone(), if_operators)))
}

fn own_pages_only<S: Clone + Send + Sync + 'static>(service: Routes, browser: &Arc<Browser>) -> Router<S> {
    // Without tonic's fallback: paths outside the service belong to the gateway.
    let routes = service
        .into_axum_router()
        .reset_fallback()
        .layer(GrpcWebLayer::new());
    routes
        .with_state(())
        .layer(from_fn_with_state(browser.clone(), only_ours))
}

/// Answers 404 without a rule for operators, and the matching gRPC status.
async fn if_operators(State(browser): State<Arc<Browser>>, request: Request, next: Next) -> Response {
    if browser.routes.with(|table| table.operator.is_some()) {
        return next.run(request).await;
    }
    let kind = request.headers().get(header::CONTENT_TYPE);
    match kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc-web")) {
        true => refusal(operators::status::no_service(), StatusCode::NOT_FOUND),
        false => HttpError::NotFound.into_response(),
    }
}

/// Rejects requests that do not come from our own pages with 403, and with the matching gRPC status in the
/// headers. Also rejects a message that does not arrive in time. Answers are never cacheable.
async fn only_ours(State(browser): State<Arc<Browser>>, request: Request, next: Next) -> Response {
    let base = &browser.sites.of(request.headers()).base_url;
    if csrf::check_script(request.headers(), base).is_err() {
        let reason = ErrorReason::ErrCsrf;
        let status = error::status(reason, "the call does not come from a page of this site", []);
        return refusal(status, StatusCode::FORBIDDEN);
    }
    let (head, body) = request.into_parts();
    let body = match to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(unread) => {
            let (limit, reason, words) = if slow_client::caused(&unread) {
                let words = "the message did not arrive in time";
                (Limit::BodyTime, ErrorReason::ErrDeadlineExceeded, words)
            } else {
                let words = "the message is too large";
                (Limit::BodyBytes, ErrorReason::ErrRequestTooLarge, words)
            };
            browser.metrics.limits.count(limit.name());
            return refusal(error::status(reason, words, []), StatusCode::OK);
        }
    };
    no_store(next.run(Request::from_parts(head, Body::from(body))).await)
}

/// An answer without a message.
fn refusal(status: Status, code: StatusCode) -> Response {
    let mut response = status.into_http::<Body>();
    *response.status_mut() = code;
    let kind = HeaderValue::from_static("application/grpc-web+proto");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    no_store(response)
}
