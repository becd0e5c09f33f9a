//! The dispatch of every request: authorization, deadline, the method itself, and the record of the outcome.
//!
//! Invariants
//! - A caller without the right learns nothing: it is authorized before the service reads the message, and
//!   before the answer shows whether the method exists.
//! - A deadline covers the whole call, including the time to read its message.
//! - Memory is counted per caller. A caller with too much waiting is rejected before its message is read.
//! - A caller that names no request receives the generated name, which finds its records.
//! - Every failure carries one `ErrorInfo`, even one of the framework.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method as HttpMethod, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use chassis::serve::BytesPermit;
use session_proto::v1::operator_session_service_server::OperatorSessionServiceServer;
use session_proto::v1::session_service_server::SessionServiceServer;
use tonic::codegen::Service as _;
use tonic::{Code, Status};
use tracing::Instrument as _;

use super::api::Api;
use super::call::{Call, X_REQUEST_ID};
use super::call_context::CallContext;
use super::counted_body;
use super::deadline::MAX_DEADLINE;
use super::method::Method;
use super::record::{self, CallRecord};
use super::status;
use crate::callers::Rpc;

/// The content types of gRPC (gRPC over HTTP/2, "Content-Type"), without parameters.
const GRPC_TYPES: [&str; 2] = ["application/grpc", "application/grpc+proto"];

/// The services that answer calls.
pub(super) struct Services {
    pub(super) calls: CallContext,
    pub(super) sessions: SessionServiceServer<Api>,
    pub(super) operators: OperatorSessionServiceServer<Api>,
    /// The framework's services, and the answer for unknown paths.
    pub(super) others: Router,
}

impl Services {
    /// The path alone selects one of our methods, without a router's look-up.
    async fn called(&self, method: Method, request: Request) -> Response {
        let answered = match method.rpc {
            Some(rpc) if rpc.is_for_operators() => self
                .operators
                .clone()
                .call(request)
                .await
                .map(|answer| answer.map(Body::new)),
            Some(_) => self
                .sessions
                .clone()
                .call(request)
                .await
                .map(|answer| answer.map(Body::new)),
            None => self.others.clone().call(request).await,
        };
        answered.unwrap_or_else(|never| match never {})
    }
}

/// Answers a request.
pub(super) async fn answer(State(services): State<Arc<Services>>, mut request: Request) -> Response {
    let calls = &services.calls;
    if let Some(refusal) = no_call(&request) {
        return refusal;
    }
    let method = Method::of(request.uri().path());
    let call = Call::of(&request);
    let unnamed = (!call.names_request).then_some(call.request);
    let span = record::span(method, request.headers());
    let record = CallRecord::begin(method, call.clone(), calls, span.clone());
    let response = match admitted(calls, method, &call) {
        Err(status) => status.into_http(),
        Ok(held) => {
            let time = call.timeout.unwrap_or(method.deadline).min(MAX_DEADLINE);
            let (waiting, origin) = (call.waiting.clone(), call.origin());
            request.extensions_mut().insert(call);
            // The message of every other method is in one piece.
            if method.rpc.is_some_and(|rpc| rpc != Rpc::FollowSessions) {
                request = request.map(|body| counted_body::request(body, waiting.clone()));
            }
            let answer = tokio::time::timeout(time, services.called(method, request)).instrument(span);
            match origin.scope(answer).await {
                Ok(response) => counted_body::response(response, &waiting, held),
                Err(_elapsed) => status::too_late().into_http::<Body>(),
            }
        }
    };
    let mut response = if method.is_open() {
        response
    } else {
        explained(response)
    };
    if let Some(id) = unnamed
        && let Ok(id) = HeaderValue::from_str(id.as_str())
    {
        response.headers_mut().insert(X_REQUEST_ID, id);
    }
    record.record_answer(failure(&response).as_ref());
    response
}

/// A request that is no gRPC call gets an HTTP status.
fn no_call(request: &Request) -> Option<Response> {
    if request.method() != HttpMethod::POST {
        let allow = (header::ALLOW, HeaderValue::from_static("POST"));
        return Some((StatusCode::METHOD_NOT_ALLOWED, [allow]).into_response());
    }
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let essence = content_type
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    let is_grpc =
        essence.is_some_and(|essence| GRPC_TYPES.iter().any(|grpc| grpc.eq_ignore_ascii_case(essence)));
    (!is_grpc).then(|| StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response())
}

/// The permit for the memory of a call that may be made.
fn admitted(calls: &CallContext, method: Method, call: &Call) -> Result<BytesPermit, Status> {
    if !method.is_open() {
        let allowed = calls.callers.allow(&call.caller, method.rpc);
        allowed.map_err(status::access_denied)?;
    }
    call.waiting.hold(method.bytes).ok_or_else(status::overloaded)
}

/// The failure in a response's head; the service makes the status of a later failure in a stream.
fn failure(response: &Response) -> Option<Status> {
    Status::from_header_map(response.headers()).filter(|status| status.code() != Code::Ok)
}

/// Adds the missing reason to a failure of the framework.
fn explained(mut response: Response) -> Response {
    let bare = failure(&response).filter(|status| status.details().is_empty());
    let Some(status) = bare.as_ref().and_then(status::explained) else {
        return response;
    };
    if status.add_header(response.headers_mut()).is_err() {
        return Status::new(status.code(), "").into_http();
    }
    response
}
