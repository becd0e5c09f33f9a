//! Answers that are not taken: a client that lets a stream of its HTTP/2 connection stand still is given up, and what
//! the answer holds is let go, an upstream's connection above all.
//!
//! Over HTTP/1.1, and where a whole connection stands still, the kernel notices (`chassis::serve::give_up_stalled`). Within a
//! connection that lives, only the stream's window stands still (RFC 9113, section 5.2), which only the answer can tell.
//! Invariants: only waiting for the client counts, so that a stream of events may be silent; an answer that moves, however
//! slowly, goes on.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Version;
use axum::response::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::task::AbortOnDropHandle;

/// A larger piece is given away in parts, so that a slow client is seen to take them.
const PIECE: usize = 16 * 1024;

/// The client has taken nothing for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has taken nothing of its answer for too long")]
pub struct NotTaken;

/// How long an answer may stand still.
#[derive(Debug, Clone, Copy)]
pub struct Standstill(pub Duration);

/// The answer to a request of this version, given up when it is not taken.
#[must_use]
pub fn bounded(response: Response, version: Version, Standstill(longest): Standstill) -> Response {
    let is_small = response
        .body()
        .size_hint()
        .upper()
        .is_some_and(|bytes| bytes <= PIECE as u64);
    if version != Version::HTTP_2 || is_small {
        return response;
    }
    response.map(|body| Body::new(Taken::new(body, longest)))
}

/// An answer, and whether it is taken.
struct Taken {
    answer: Arc<Mutex<Answer>>,
    /// What is left of a large piece.
    rest: Bytes,
    _watch: AbortOnDropHandle<()>,
}

struct Answer {
    /// None once it is given up.
    body: Option<Body>,
    pieces: u64,
    waits_for_client: bool,
}

impl Taken {
    fn new(body: Body, longest: Duration) -> Self {
        let answer = Arc::new(Mutex::new(Answer {
            body: Some(body),
            pieces: 0,
            waits_for_client: true,
        }));
        let watch = tokio::spawn(give_up(Arc::downgrade(&answer), longest));
        Self {
            answer,
            rest: Bytes::new(),
            _watch: AbortOnDropHandle::new(watch),
        }
    }
}

/// Lets an answer go of which nothing was taken for `longest`, or for up to twice as long.
async fn give_up(answer: Weak<Mutex<Answer>>, longest: Duration) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(longest).await;
        let Some(answer) = answer.upgrade() else {
            return;
        };
        let mut answer = locked(&answer);
        if answer.waits_for_client && answer.pieces == seen {
            answer.body = None;
            tracing::debug!("an answer that its client does not take is given up");
            return;
        }
        seen = answer.pieces;
    }
}

fn locked(answer: &Mutex<Answer>) -> MutexGuard<'_, Answer> {
    answer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let mut answer = locked(&this.answer);
        if this.rest.is_empty() {
            let Some(body) = answer.body.as_mut() else {
                return Poll::Ready(Some(Err(axum::Error::new(NotTaken))));
            };
            let polled = Pin::new(body).poll_frame(context);
            answer.waits_for_client = polled.is_ready();
            answer.pieces += u64::from(polled.is_ready());
            let Poll::Ready(Some(Ok(frame))) = polled else {
                return polled;
            };
            match frame.into_data() {
                Ok(data) => this.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        } else {
            answer.pieces += 1;
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
            && locked(&self.answer)
                .body
                .as_ref()
                .is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = locked(&self.answer)
            .body
            .as_ref()
            .map(HttpBody::size_hint)
            .unwrap_or_default();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;

    use super::*;

    const LONGEST: Duration = Duration::from_secs(60);

    /// An answer without an end, and a way to see whether it is still there.
    fn endless(piece: &'static [u8]) -> (Taken, Weak<()>) {
        let alive = Arc::new(());
        let seen = Arc::downgrade(&alive);
        let pieces = stream::repeat_with(move || {
            let _ = &alive;
            Ok::<_, std::io::Error>(Bytes::from_static(piece))
        });
        (Taken::new(Body::from_stream(pieces), LONGEST), seen)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_takes_is_let_go() {
        for pieces in [0, 1] {
            let (mut taken, alive) = endless(b"x");
            for _ in 0..pieces {
                taken.frame().await.unwrap().unwrap();
            }
            tokio::time::sleep(2 * LONGEST + Duration::from_secs(1)).await;
            assert!(alive.upgrade().is_none(), "after {pieces} pieces");
            assert!(
                taken.frame().await.unwrap().is_err(),
                "and not as if it were complete"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_taken_slowly_goes_on() {
        const LARGE: &[u8] = &[b'x'; 10 * PIECE];
        let (mut taken, alive) = endless(LARGE);
        for _ in 0..20 {
            let piece = taken.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(piece.len(), PIECE);
            tokio::time::sleep(LONGEST - Duration::from_secs(1)).await;
        }
        assert!(alive.upgrade().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_events_may_be_silent() {
        let events = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"event"))]);
        let mut taken = Taken::new(Body::from_stream(events.chain(stream::pending())), LONGEST);
        taken.frame().await.unwrap().unwrap();
        let silent = tokio::time::timeout(10 * LONGEST, taken.frame()).await;
        assert!(silent.is_err(), "it waits: {silent:?}");
    }

    #[tokio::test]
    async fn what_is_taken_is_what_was_answered() {
        let taken = Taken::new(Body::from("x".repeat(3 * PIECE + 1)), LONGEST);
        assert_eq!(taken.size_hint().exact(), Some(3 * PIECE as u64 + 1));
        assert_eq!(taken.collect().await.unwrap().to_bytes().len(), 3 * PIECE + 1);
    }
}
