//! The body of an answer, and the memory budget it uses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::byte_budget::{ByteBudget, BytesPermit};
use super::progress::Busy;
use super::streams::AnswerProgress;

/// Larger pieces are sent in parts, so that a slow client's progress is visible.
const PIECE: usize = 16 * 1024;

/// If a connection is over its share, an answer is cut off when the socket accepts no bytes for this long.
const PATIENCE: Duration = Duration::from_millis(50);

/// How often a waiting answer checks for room.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The resources of a request in flight, held until its answer ends.
pub(super) struct AdmittedRequest {
    pub(super) budget: ByteBudget,
    /// The request's own bytes, if they are counted here.
    pub(super) bytes: Option<BytesPermit>,
    /// Whether to cut off answers when their connection is over its share.
    pub(super) ends_over_share: bool,
    pub(super) busy: Busy,
}

/// The body of an answer in progress. Its connection is busy until the body ends.
pub(super) struct AnswerBody {
    body: Body,
    /// The rest of a piece, and the permit for its bytes.
    rest: Bytes,
    held: Option<BytesPermit>,
    /// Set while there is no room for the piece.
    waiting: Option<Waiting>,
    admitted: AdmittedRequest,
    /// The progress of its stream, over HTTP/2.
    answer: Option<Arc<AnswerProgress>>,
}

/// A piece that waits for room in its connection's share.
struct Waiting {
    next_look: Pin<Box<Sleep>>,
    /// All bytes that the socket has accepted, and when this number last grew.
    sent: u64,
    since: Instant,
}

/// The client does not read the answer. It is dropped, because other connections need the memory.
#[derive(Debug, thiserror::Error)]
#[error("the connection holds more than its share of memory, and its client reads nothing")]
struct OverShare;

impl AnswerBody {
    /// Over HTTP/2 the body records in `answer` how much was sent.
    pub(super) fn new(body: Body, answer: Option<Arc<AnswerProgress>>, admitted: AdmittedRequest) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held: None,
            waiting: None,
            admitted,
            answer,
        }
    }

    /// Waits for room and holds this many bytes. Fails if the client does not read, so that no room appears.
    fn poll_hold(
        &mut self,
        bytes: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<BytesPermit, axum::Error>> {
        let AdmittedRequest { budget, busy, .. } = &self.admitted;
        if !self.admitted.ends_over_share {
            return Poll::Ready(Ok(budget.must_hold(bytes)));
        }
        loop {
            if let Some(held) = budget.hold(bytes) {
                self.waiting = None;
                return Poll::Ready(Ok(held));
            }
            let (sent, now) = (busy.bytes_sent(), Instant::now());
            let waiting = self.waiting.get_or_insert_with(|| Waiting {
                next_look: Box::pin(tokio::time::sleep(LOOK_INTERVAL)),
                sent,
                since: now,
            });
            if waiting.sent != sent {
                (waiting.sent, waiting.since) = (sent, now);
            } else if now - waiting.since >= PATIENCE {
                return Poll::Ready(Err(axum::Error::new(OverShare)));
            }
            ready!(waiting.next_look.as_mut().poll(context));
            waiting.next_look.as_mut().reset(now + LOOK_INTERVAL);
        }
    }

    /// The next part of the rest: all of it over HTTP/1.1. Over HTTP/2 the last byte is a part of its own. The
    /// server requests it only when all earlier bytes may be sent, so only this byte can stall unnoticed.
    fn part(&mut self) -> Frame<Bytes> {
        let left = self.rest.len();
        let length = match left {
            _ if self.answer.is_none() => left,
            2..=PIECE if self.body.is_end_stream() => left - 1,
            _ => left.min(PIECE),
        };
        Frame::data(self.rest.split_to(length))
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.rest.is_empty() {
            let polled = Pin::new(&mut this.body).poll_frame(context);
            if let Some(answer) = &this.answer {
                answer.waits_for_client(polled.is_ready());
            }
            let Some(frame) = ready!(polled).transpose()? else {
                return Poll::Ready(None);
            };
            match frame.into_data() {
                Ok(data) => this.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        if this.held.is_none() {
            this.held = Some(ready!(this.poll_hold(this.rest.len(), context))?);
        }
        if let Some(answer) = &this.answer {
            answer.moved();
        }
        let part = this.part();
        if this.rest.is_empty()
            && let Some(held) = this.held.take()
        {
            held.hand_over();
        }
        Poll::Ready(Some(Ok(part)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
