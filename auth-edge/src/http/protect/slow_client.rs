//! Request bodies that do not come: a client that stays silent within its body, or lets it trickle, is given up.
//!
//! Headers that do not come are the listener's affair.
//!
//! Invariants
//! - Only waiting for the client counts, not an upstream that takes its time.
//! - A large body that comes at the least rate goes on, up to a time in all.
//!
//! Excepted are gRPC streams (`application/grpc` over HTTP/2), which may be silent by design, from when they are passed on
//! to a server that can take such streams.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Version, header};
use http_body::Body as _;
use tokio::time::{Instant, Sleep};

use crate::http::errors::HttpError;
use crate::http::mapped_body::{PolledFrame, map_polls};

/// The client has let us wait for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client does not go on with its body, or goes on too slowly")]
pub(crate) struct TooSlow;

/// The least rate of a body, in bytes per second of waiting, once the longest silence has passed: Apache's default
/// (`RequestReadTimeout body=20,MinRate=500`).
const MIN_RATE: u64 = 500;

/// The longest wait for a body in all: at the least rate it brings 1.8 MB, and a gigabyte needs 2.4 Mbit/s.
const TOTAL_MAX: Duration = Duration::from_secs(3_600);

/// An answer, WebSocket or event of which the client takes nothing for so long is given up: nginx's default (`send_timeout`).
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// How much longer a client is waited for that has sent `received` bytes and been waited for so long; `silence` is the longest silence,
/// and the time granted before the rate counts.
fn left(silence: Duration, received: u64, waited: Duration) -> Duration {
    let at_least_rate = Duration::from_millis(received.saturating_mul(1_000) / MIN_RATE);
    let by_rate = silence.saturating_add(at_least_rate).saturating_sub(waited);
    silence.min(by_rate).min(TOTAL_MAX.saturating_sub(waited))
}

/// Request extension: whether the body may be silent for as long as it likes.
#[derive(Clone, Debug, Default)]
pub(crate) struct MayBeSilent(Arc<AtomicBool>);

impl MayBeSilent {
    /// It may from now on: whoever gets it takes streams.
    pub(crate) fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A request whose body is given up when it does not come, after a silence of `silence` at most.
pub(crate) fn bounded(mut request: Request, silence: Duration) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    let may_be_silent = streams(request.version(), request.headers()).then(MayBeSilent::default);
    if let Some(may_be_silent) = &may_be_silent {
        request.extensions_mut().insert(may_be_silent.clone());
    }
    let mut waiting = BodyDeadline {
        silence,
        received: 0,
        waited: Duration::ZERO,
        now: None,
        may_be_silent,
    };
    request.map(|body| {
        Body::new(map_polls(body, move |context, frame| {
            waiting.pass(context, frame)
        }))
    })
}

/// Whether a request may be a stream of gRPC, which is HTTP/2 alone; gRPC-Web has none from the client.
fn streams(version: Version, headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    version == Version::HTTP_2 && rest.is_some_and(|rest| !rest.starts_with(b"-"))
}

/// Whether an error, or what caused it, is [`TooSlow`].
#[must_use]
pub(crate) fn caused(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<TooSlow>())
}

/// Why a body that was read up to a limit could not be: it came too slowly, or it is too large.
#[must_use]
pub(crate) fn unread(error: &axum::Error) -> HttpError {
    if caused(error) {
        HttpError::TooSlow
    } else {
        HttpError::TooLarge
    }
}

/// How far a body has come, and how long it was waited for.
struct BodyDeadline {
    silence: Duration,
    received: u64,
    /// In all, but for the wait that runs.
    waited: Duration,
    /// Since when it is waited for now, and until when.
    now: Option<(Instant, Pin<Box<Sleep>>)>,
    may_be_silent: Option<MayBeSilent>,
}

impl BodyDeadline {
    /// What the body gave; [`TooSlow`] when it has given nothing for too long.
    fn pass(
        &mut self,
        context: &mut Context<'_>,
        polled: PolledFrame<axum::Error>,
    ) -> PolledFrame<axum::Error> {
        let Poll::Ready(frame) = polled else {
            let over = self.poll_wait(context);
            return over.map(|()| Some(Err(axum::Error::new(TooSlow))));
        };
        if let Some((since, _)) = self.now.take() {
            self.waited += since.elapsed();
        }
        if let Some(Ok(frame)) = &frame {
            self.received += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        Poll::Ready(frame)
    }

    /// Waits for the client, as long as it may be waited for.
    fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let may_be_silent = self.may_be_silent.as_ref();
        if may_be_silent.is_some_and(|it| it.0.load(Ordering::Relaxed)) {
            return Poll::Pending;
        }
        let left = left(self.silence, self.received, self.waited);
        let (_, over) = self.now.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + left)))
        });
        over.as_mut().poll(context)
    }
}

#[cfg(test)]
#[path = "slow_client_tests.rs"]
mod tests;
