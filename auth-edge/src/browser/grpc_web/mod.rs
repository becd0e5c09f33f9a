//! `BrowserSessionService` over gRPC-Web, on the port of everything else.
//!
//! Invariants
//! - Every call comes from our own pages.
//! - A call acts for the session of the cookie and for its person alone.
//! - Nobody learns of a token more than its scope and expiry.
//! - Reading and watching never roll.
//! - A call waits for its own message no longer than any request for its body.

mod service;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use session_proto::error;
use session_proto::v1::ErrorReason;
use session_proto::v1::browser_session_service_server::BrowserSessionServiceServer;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;

use self::service::BrowserApi;
use crate::browser::Browser;
use crate::http::errors::Limit;
use crate::http::no_store;
use crate::http::protect::{csrf, slow_client};

/// Requests carry a handle at most, unpacked if they are compressed; anything larger is not from our pages.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// The same with its frame, as text.
const BODY_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// Pages of one person that listen at once: more tabs than anybody keeps open at one edge. A page beyond them polls its
/// session now and then instead. Calls that list or end sessions too: as many as pages that hear of a change and look; each
/// costs the session service several reads.
const OF_PERSON_MAX: u32 = 100;

/// Its routes.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(browser: &Arc<Browser>) -> Router<S> {
    let browser_api = BrowserApi {
        browser: browser.clone(),
    };
    let service = BrowserSessionServiceServer::new(browser_api)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(REQUEST_BYTES_MAX);
    // The service alone, without tonic's fallback: what is not its path belongs to the gateway.
    let routes = Routes::default()
        .add_service(service)
        .into_axum_router()
        .reset_fallback()
        .layer(GrpcWebLayer::new());
    routes
        .with_state(())
        .layer(from_fn_with_state(browser.clone(), only_ours))
}

/// Refuses what does not come from our own pages before anything reads it: 403 for HTTP, and the same in gRPC's headers
/// for clients that look there; and a message that does not come. No cache may keep any answer.
async fn only_ours(State(browser): State<Arc<Browser>>, request: Request, next: Next) -> Response {
    let base = &browser.sites.of(request.headers()).base_url;
    if csrf::check_script(request.headers(), base).is_err() {
        let reason = ErrorReason::ErrCsrf;
        let status = error::status(reason, "the call does not come from our own pages", []);
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
