//! Ends answers and uploads when their session ends. Ends streams when the edge stops.
//!
//! | Answer | Ends |
//! |---|---|
//! | event stream | with a normal end of its body: browsers drop an incomplete event, and reconnect |
//! | gRPC | with a status in its trailers: `UNAUTHENTICATED` if the session ended, `UNAVAILABLE` if the edge stops |
//! | other | incomplete: last chunk or bytes missing (RFC 9112, section 8), RST_STREAM (RFC 9113, section 8.1) |
//!
//! Small bodies are not watched: they end before a check could run.

use std::future::Future as _;
use std::io;
use std::task::Poll;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use http_body::{Body as HttpBody, Frame};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::http::mapped_body::map_polls;
use crate::sessions::{CurrentSession, OpenStream, OpenStreams};

/// A body of at most this many bytes is sent in one piece.
const SMALL_BYTES: u64 = 64 * 1024;

/// Whether a body may take long to send.
fn is_long(body: &impl HttpBody) -> bool {
    body.size_hint().upper().is_none_or(|bytes| bytes > SMALL_BYTES)
}

/// A kind of answer that has its own way to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    Events,
    /// Not gRPC-Web: its status is in its body.
    Grpc,
}

impl StreamKind {
    /// The kind by the content type.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let kind = value.split(';').next()?.trim_ascii().to_ascii_lowercase();
        match kind.split_once('+').map_or(kind.as_str(), |(kind, _format)| kind) {
            "text/event-stream" => Some(Self::Events),
            "application/grpc" => Some(Self::Grpc),
            _ => None,
        }
    }
}

/// Ends an answer when its session ends. Also ends a stream that outlasts the edge's time to stop (`overdue`).
pub(super) fn until_ended(
    answer: Response,
    streams: &OpenStreams,
    session: Option<&CurrentSession>,
    overdue: &CancellationToken,
) -> Response {
    let kind = StreamKind::of(answer.headers());
    let is_watched = !answer.body().is_end_stream() && is_long(answer.body());
    if !is_watched || (session.is_none() && kind.is_none()) {
        return answer;
    }
    let open = session.map(|current| streams.open(&current.session.handle));
    let overdue = kind.map_or_else(CancellationToken::new, |_| overdue.clone());
    let mut end = Box::pin(async move {
        tokio::select! {
            () = wait_for_session_end(open.as_ref()) => Status::unauthenticated("the session has ended"),
            () = overdue.cancelled() => Status::unavailable("the edge is stopping"),
        }
    });
    let mut is_over = false;
    answer.map(|body| {
        Body::new(map_polls(body, move |context, frame| {
            if is_over {
                return Poll::Ready(None);
            }
            let Poll::Ready(status) = end.as_mut().poll(context) else {
                return frame;
            };
            is_over = true;
            Poll::Ready(match kind {
                None => Some(Err(axum::Error::new(io::Error::other("the session has ended")))),
                Some(StreamKind::Events) => None,
                Some(StreamKind::Grpc) => {
                    let mut trailers = HeaderMap::new();
                    let written = status.add_header(&mut trailers);
                    Some(
                        written
                            .map(|()| Frame::trailers(trailers))
                            .map_err(axum::Error::new),
                    )
                }
            })
        }))
    })
}

/// Registers the upload of a long body as a stream of the request's session; `None` without a session.
pub(super) fn upload(
    body: &Body,
    streams: &OpenStreams,
    session: Option<&CurrentSession>,
) -> Option<OpenStream> {
    let session = session.filter(|_| !body.is_end_stream() && is_long(body))?;
    Some(streams.open(&session.session.handle))
}

/// Completes when the session of a stream has ended; never without a session.
pub(super) async fn wait_for_session_end(open: Option<&OpenStream>) {
    match open {
        Some(open) => open.wait_for_end().await,
        None => std::future::pending().await,
    }
}
