//! The body of a request on its way to an upstream, and waiting for the answer meanwhile.
//!
//! A large upload takes as long as the client's network takes; only silence counts as slow. Invariants: a body never
//! becomes longer than its route allows; trailers obey the rules of headers, since some servers add them to those.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::super::headers;

/// Nothing moved for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stalled;

/// The body is longer than its route allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request's body is too large")]
pub(super) struct TooLarge;

/// The client's body broke off, or its framing makes no sense (RFC 9112, section 7.1).
#[derive(Debug, thiserror::Error)]
#[error("the request's body cannot be read")]
pub(super) struct Unreadable(#[source] axum::Error);

/// Counts the frames of a body as they leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<AtomicU64>);

/// A body of at most `limit` bytes (0 is no limit) that tells of its progress.
pub(super) fn watched(body: Body, limit: u64) -> (Body, Progress) {
    let progress = Progress::default();
    let room = if limit == 0 { u64::MAX } else { limit };
    (
        Body::new(UploadBody {
            body,
            room,
            progress: progress.clone(),
        }),
        progress,
    )
}

/// Waits for `answer`, and longer as long as the body moves.
pub(super) async fn within<F: Future>(
    limit: Duration,
    progress: &Progress,
    answer: F,
) -> Result<F::Output, Stalled> {
    let mut answer = std::pin::pin!(answer);
    let mut seen = progress.0.load(Ordering::Relaxed);
    loop {
        if let Ok(answer) = tokio::time::timeout(limit, answer.as_mut()).await {
            return Ok(answer);
        }
        let now = progress.0.load(Ordering::Relaxed);
        if now == seen {
            return Err(Stalled);
        }
        seen = now;
    }
}

struct UploadBody {
    body: Body,
    room: u64,
    progress: Progress,
}

impl HttpBody for UploadBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            return Poll::Pending;
        };
        self.progress.0.fetch_add(1, Ordering::Relaxed);
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(axum::Error::new(Unreadable(error))))),
            None => return Poll::Ready(None),
        };
        let frame = match frame.into_trailers() {
            Ok(mut trailers) => {
                headers::strip_trailers(&mut trailers);
                Frame::trailers(trailers)
            }
            Err(data) => data,
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.room.checked_sub(length) {
            Some(room) => {
                self.room = room;
                Poll::Ready(Some(Ok(frame)))
            }
            None => Poll::Ready(Some(Err(axum::Error::new(TooLarge)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::{HeaderMap, HeaderValue};
    use http_body_util::BodyExt as _;

    use super::{Stalled, watched, within};

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait_and_progress_extends_it() {
        let limit = Duration::from_secs(60);
        let (_, silent) = watched(Body::empty(), 0);
        let waiting = within(limit, &silent, std::future::pending::<()>());
        let waited = tokio::time::timeout(10 * limit, waiting).await;
        assert_eq!(waited.expect("it ends"), Err(Stalled));

        let (mut body, moving) = watched(Body::from("a byte"), 0);
        let slow = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            let _ = body.frame().await;
            tokio::time::sleep(Duration::from_secs(50)).await;
        };
        assert_eq!(within(limit, &moving, slow).await, Ok(()));
    }

    #[tokio::test]
    async fn a_body_may_have_its_length_and_no_more() {
        assert!(watched(Body::from("12345"), 5).0.collect().await.is_ok());
        assert!(watched(Body::from("123456"), 5).0.collect().await.is_err());
        assert!(watched(Body::from("123456"), 0).0.collect().await.is_ok());
    }

    #[tokio::test]
    async fn trailers_carry_nobodys_identity() {
        let mut trailers = HeaderMap::new();
        for name in [
            "x-auth-subject",
            "x_auth_subject",
            "cookie",
            "authorization",
            "checksum",
        ] {
            trailers.insert(name, HeaderValue::from_static("admin"));
        }
        let body = Body::new(Body::from("a").with_trailers(std::future::ready(Some(Ok(trailers)))));
        let passed = watched(body, 0).0.collect().await.unwrap();
        let names: Vec<&str> = passed
            .trailers()
            .unwrap()
            .keys()
            .map(|name| name.as_str())
            .collect();
        assert_eq!(names, ["checksum"]);
    }
}
