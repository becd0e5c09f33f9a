//! Request bodies that do not come: a client that stays silent within its body is given up.
//!
//! Headers that do not come are the listener's affair. Invariants: only waiting for the client counts; a body that moves,
//! however slowly, goes on. Deliberately absent: gRPC bodies, whose streams may be silent by design.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// The client has said nothing for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has been silent for too long within its body")]
pub struct TooSlow;

/// The longest silence within a body.
#[derive(Debug, Clone, Copy)]
pub struct Patience(pub Duration);

/// A request whose body is given up when it falls silent.
pub fn bounded(request: Request, patience: Patience) -> Request {
    let streams = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    if streams || request.body().is_end_stream() {
        return request;
    }
    request.map(|body| Body::new(Awaited::new(body, patience)))
}

/// Whether an error, or what caused it, is [`TooSlow`].
#[must_use]
pub fn caused(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<TooSlow>())
}

struct Awaited {
    body: Body,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Awaited {
    fn new(body: Body, Patience(patience): Patience) -> Self {
        Self {
            body,
            patience,
            waiting: None,
        }
    }
}

impl HttpBody for Awaited {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.waiting = None;
            return Poll::Ready(frame);
        }
        let until = Instant::now() + self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(axum::Error::new(TooSlow)))),
            Poll::Pending => Poll::Pending,
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
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_may_be_slow_but_not_silent() {
        let patience = Patience(Duration::from_secs(30));
        let slow = futures_util::stream::unfold(0, |count| async move {
            tokio::time::sleep(Duration::from_secs(29)).await;
            (count < 10).then_some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), count + 1))
        });
        let read = Awaited::new(Body::from_stream(slow), patience)
            .collect()
            .await
            .unwrap();
        assert_eq!(read.to_bytes(), "xxxxxxxxxx");

        let silent = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let mut silent = Awaited::new(Body::from_stream(silent), patience);
        let ended = tokio::time::timeout(Duration::from_secs(300), silent.frame()).await;
        let ended = ended.expect("it is given up");
        assert!(caused(&ended.unwrap().unwrap_err()));
    }
}
