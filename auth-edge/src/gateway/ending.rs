//! Answers and uploads of a session that end with it.
//!
//! An answer is cut where it is: HTTP/1.1 gets no last chunk or too few bytes, HTTP/2 a RST_STREAM, so that nobody takes a
//! part for the whole (RFC 9112, section 8; RFC 9113, section 8.1). Small bodies are left alone: they are over before
//! anybody could look.

use std::future::Future as _;
use std::task::Poll;

use axum::body::Body;
use http_body::Body as HttpBody;

use crate::http::mapped_body::map_polls;
use crate::sessions::{CurrentSession, OpenStream, OpenStreams};

/// A body of at most this many bytes leaves in one piece.
const SMALL_BYTES: u64 = 64 * 1024;

/// The session of a stream has ended.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the session has ended")]
pub(super) struct SessionEnded;

/// Whether a body may take long to pass.
fn is_long(body: &impl HttpBody) -> bool {
    body.size_hint().upper().is_none_or(|bytes| bytes > SMALL_BYTES)
}

/// An answer that ends with the session it is made for.
pub(super) fn until_ended(body: Body, streams: &OpenStreams, session: &CurrentSession) -> Body {
    if body.is_end_stream() || !is_long(&body) {
        return body;
    }
    let open = streams.open(&session.session.handle);
    let mut ended = Box::pin(open.ended());
    Body::new(map_polls(body, move |context, frame, _| {
        let _counted_as_open = &open;
        match ended.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(axum::Error::new(SessionEnded)))),
            Poll::Pending => frame,
        }
    }))
}

/// The stream of a request whose body may take long, on behalf of its session if it has one.
pub(super) fn upload(
    body: &Body,
    streams: &OpenStreams,
    session: Option<&CurrentSession>,
) -> Option<OpenStream> {
    let session = session.filter(|_| !body.is_end_stream() && is_long(body))?;
    Some(streams.open(&session.session.handle))
}

/// Is over once the session of a stream has ended: never without one.
pub(super) async fn ended(open: Option<&OpenStream>) {
    match open {
        Some(open) => open.ended().await,
        None => std::future::pending().await,
    }
}
