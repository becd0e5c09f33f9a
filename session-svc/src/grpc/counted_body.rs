//! Counts the memory of a caller against its connection's limit: the call, the request body, and the response.
//!
//! Invariants
//! - An answer counts from its creation until the connection takes it. An answer beyond the limit is dropped
//!   at once, and the caller receives the error that too much is waiting.
//! - A message counts as it arrives, so that many endless messages take no more than answers do.

use axum::body::{Body, Bytes};
use axum::response::Response;
use chassis::serve::{ByteBudget, BytesPermit};
use futures_util::FutureExt as _;
use futures_util::stream::{StreamExt as _, iter};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};

use super::status;

fn data_bytes(frame: &Result<Frame<Bytes>, axum::Error>) -> usize {
    frame
        .as_ref()
        .ok()
        .and_then(Frame::data_ref)
        .map_or(0, Bytes::len)
}

/// Counts a request body.
pub(super) fn request(body: Body, waiting: ByteBudget) -> Body {
    let (mut bytes, mut held) = (0, None);
    let frames = BodyStream::new(body).map(move |frame| {
        bytes += data_bytes(&frame);
        // One permit holds all of the body.
        drop(held.take());
        held = waiting.hold(bytes);
        match held {
            Some(_) => frame,
            None => Err(axum::Error::new(status::overloaded())),
        }
    });
    Body::new(StreamBody::new(frames))
}

/// Counts a response, and its call until it ends; rejects a response beyond the limit.
pub(super) fn response(response: Response, waiting: &ByteBudget, call: BytesPermit) -> Response {
    let (head, mut body) = response.into_parts();
    // An answer with one message is complete at once.
    let first = match body.frame().now_or_never() {
        None => None,
        Some(None) => return Response::from_parts(head, Body::empty()),
        Some(Some(frame)) => {
            let Some(held) = waiting.hold(data_bytes(&frame)) else {
                return status::overloaded().into_http();
            };
            Some((frame, held))
        }
    };
    let first = iter(first).map(|(frame, _held)| frame);
    let frames = first.chain(BodyStream::new(body)).map(move |frame| {
        let _until_the_end = &call;
        frame
    });
    Response::from_parts(head, Body::new(StreamBody::new(frames)))
}
