//! Ends requests whose client sends no body for too long, or sends it too slowly.
//!
//! The listener bounds the wait for headers.
//!
//! Invariants
//! - Only the wait for the client counts, not the time an upstream takes.
//! - A large body that arrives at the minimum rate continues, up to a total time.
//!
//! Exception: a gRPC stream (`application/grpc` over HTTP/2) may be silent by design, once the edge passes it
//! to an upstream that accepts streams.

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

/// The client made the edge wait for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client stopped sending its body, or sends it too slowly")]
pub(crate) struct TooSlow;

/// The minimum rate of a body, in bytes per second of waiting, once the total wait exceeds the
/// longest silence. Apache's default (`RequestReadTimeout body=20,MinRate=500`).
const MIN_RATE: u64 = 500;

/// The longest total wait for a body: enough for 1.8 MB at the minimum rate, and for 1 GB at 2.4 Mbit/s.
const TOTAL_MAX: Duration = Duration::from_secs(3_600);

/// How long a client may pause in reading an answer, WebSocket or event stream; nginx's `send_timeout` default.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// How much longer to wait for a client that has sent `received` bytes while the edge waited for `waited`.
/// `silence` is the longest silence, and also the total wait before the minimum rate applies.
fn time_left(silence: Duration, received: u64, waited: Duration) -> Duration {
    let at_least_rate = Duration::from_millis(received.saturating_mul(1_000) / MIN_RATE);
    let by_rate = silence.saturating_add(at_least_rate).saturating_sub(waited);
    silence.min(by_rate).min(TOTAL_MAX.saturating_sub(waited))
}

/// Request extension: whether the body may be silent without a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct SilenceAllowance(Arc<AtomicBool>);

impl SilenceAllowance {
    /// Allows silence from now on, because the receiver accepts streams.
    pub(crate) fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ends the request's body after a silence of `silence`, or below the minimum rate.
pub(crate) fn bounded(mut request: Request, silence: Duration) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    let may_be_silent = streams(request.version(), request.headers()).then(SilenceAllowance::default);
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

/// Whether a request may be a gRPC stream. It needs HTTP/2; a gRPC-Web client cannot send one.
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

/// Why reading a bounded body failed: it is too slow or too large.
#[must_use]
pub(crate) fn unread(error: &axum::Error) -> HttpError {
    if caused(error) {
        HttpError::TooSlow
    } else {
        HttpError::TooLarge
    }
}

/// How much of a body has arrived, and how long the edge has waited for it.
struct BodyDeadline {
    silence: Duration,
    received: u64,
    /// The total wait, without the current one.
    waited: Duration,
    /// The current wait: its start and its timer.
    now: Option<(Instant, Pin<Box<Sleep>>)>,
    may_be_silent: Option<SilenceAllowance>,
}

impl BodyDeadline {
    /// Returns the polled frame, or [`TooSlow`] if the client was silent for too long.
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

    /// Ready when the client has used up its time; never if its silence is allowed.
    fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let may_be_silent = self.may_be_silent.as_ref();
        if may_be_silent.is_some_and(|it| it.0.load(Ordering::Relaxed)) {
            return Poll::Pending;
        }
        let left = time_left(self.silence, self.received, self.waited);
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
