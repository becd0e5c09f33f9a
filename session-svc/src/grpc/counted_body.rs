//! The memory a caller takes, counted against its connection's limit: the call, the request body, and the response.
//!
//! Invariants
//! - An answer is counted from when it is made until the connection takes it; one beyond the limit is dropped at once,
//!   and the caller gets the error that it has too much waiting.
//! - A message is counted as it comes, so that many that never end take no more than answers do.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use chassis::serve::{ByteBudget, BytesPermit};
use http_body::{Frame, SizeHint};

use super::status;

type Framed = Option<Result<Frame<Bytes>, axum::Error>>;

/// The request body of a method with one message.
struct CountedRequestBody {
    body: Body,
    bytes: usize,
    waiting: ByteBudget,
    held: Option<BytesPermit>,
}

/// The body of an answer.
struct CountedResponseBody {
    /// The frame that was there at once, and its permit.
    first: Option<(Result<Frame<Bytes>, axum::Error>, BytesPermit)>,
    body: Body,
    _call: BytesPermit,
}

/// A request body that is counted.
pub(super) fn request(body: Body, waiting: ByteBudget) -> Body {
    Body::new(CountedRequestBody {
        body,
        bytes: 0,
        waiting,
        held: None,
    })
}

/// A response that is counted, as is its call until it is over; a refusal beyond the limit.
pub(super) async fn response(response: Response, waiting: &ByteBudget, call: BytesPermit) -> Response {
    let (head, mut body) = response.into_parts();
    if body.is_end_stream() {
        return Response::from_parts(head, body);
    }
    let first: Poll<Framed> =
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context))).await;
    let first = match first {
        Poll::Pending => None,
        Poll::Ready(None) => return Response::from_parts(head, Body::empty()),
        Poll::Ready(Some(frame)) => {
            let bytes = frame
                .as_ref()
                .ok()
                .and_then(Frame::data_ref)
                .map_or(0, Bytes::len);
            let Some(held) = waiting.hold(bytes) else {
                return status::overloaded().into_http();
            };
            Some((frame, held))
        }
    };
    let answer = CountedResponseBody {
        first,
        body,
        _call: call,
    };
    Response::from_parts(head, Body::new(answer))
}

impl HttpBody for CountedRequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Framed> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.bytes += data.len();
            self.held = None;
            self.held = self.waiting.hold(self.bytes);
            if self.held.is_none() {
                return Poll::Ready(Some(Err(axum::Error::new(status::overloaded()))));
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl HttpBody for CountedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Framed> {
        match self.first.take() {
            Some((frame, _held)) => Poll::Ready(Some(frame)),
            None => Pin::new(&mut self.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_end_stream()
    }
}
