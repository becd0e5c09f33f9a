//! The repeatable body of a request to an upstream, and the wait for the answer meanwhile.
//!
//! A large upload takes as long as the client's network takes; only silence counts as slow.
//!
//! Invariants
//! - A body never exceeds the limit of its route.
//! - Trailers obey the rules of headers, since some servers merge them.
//! - One attempt at a time reads the body. Earlier ones end with an error: a part never passes as the whole.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Limited;

use crate::gateway::headers;
use crate::http::mapped_body::{PolledFrame, map_polls};
use crate::route_table::upstream_headers::IdentityHeaderNames;

/// Longest part of a body kept for a repetition, in bytes: enough for forms and API calls.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// The client's body broke off, or its framing is invalid (RFC 9112, section 7.1).
#[derive(Debug, thiserror::Error)]
#[error("the request's body cannot be read")]
pub(super) struct UploadReadError(#[source] axum::Error);

/// A request's body, for one attempt after another.
pub(super) struct Upload(Option<Arc<Mutex<Reading>>>);

/// How far a body has been read.
struct Reading {
    body: Body,
    /// The first pieces of the body.
    kept: Vec<Bytes>,
    kept_bytes: usize,
    is_keeping: bool,
    has_ended: bool,
    frames: u64,
    /// The attempt that reads the body, counted from 1.
    sending: u64,
}

impl Upload {
    /// Wraps a body of up to `limit` bytes (0: no limit); longer ones end in a
    /// [`http_body_util::LengthLimitError`]. Removes the trailers in `identity_names`. `is_keeping` allows repetition.
    pub(super) fn new(
        body: Body,
        limit: u64,
        identity_names: &IdentityHeaderNames,
        is_keeping: bool,
    ) -> Self {
        if body.is_end_stream() {
            return Self(None);
        }
        let identity_names = identity_names.clone();
        let body = map_polls(body, move |_, polled| {
            headers::fit_frame(polled, &identity_names).map_err(UploadReadError)
        });
        let limit = match usize::try_from(limit) {
            Ok(limit) if limit > 0 => limit,
            _ => usize::MAX,
        };
        Self(Some(Arc::new(Mutex::new(Reading {
            body: Body::new(Limited::new(body, limit)),
            kept: Vec::new(),
            kept_bytes: 0,
            is_keeping,
            has_ended: false,
            frames: 0,
            sending: 0,
        }))))
    }

    /// The body from its start, for a new attempt.
    pub(super) fn send(&self) -> Body {
        let Some(reading) = &self.0 else {
            return Body::empty();
        };
        let mut first = lock(reading);
        first.sending += 1;
        Body::new(SentBody {
            sending: first.sending,
            reading: Arc::clone(reading),
            position: 0,
        })
    }

    /// Whether [`Self::send`] still returns the whole body.
    pub(super) fn is_whole(&self) -> bool {
        self.0.as_ref().is_none_or(|reading| {
            let reading = lock(reading);
            reading.is_keeping || reading.frames == 0
        })
    }

    /// Stops keeping pieces: the request is not sent again.
    pub(super) fn forget(&self) {
        if let Some(reading) = &self.0 {
            lock(reading).is_keeping = false;
        }
    }

    fn frames(&self) -> u64 {
        self.0.as_ref().map_or(0, |reading| lock(reading).frames)
    }

    /// Waits for `answer`, and longer while the body makes progress; `None` after too long a silence.
    pub(super) async fn within<F: Future>(&self, limit: Duration, answer: F) -> Option<F::Output> {
        let mut answer = std::pin::pin!(answer);
        let mut seen = self.frames();
        loop {
            if let Ok(answer) = tokio::time::timeout(limit, answer.as_mut()).await {
                return Some(answer);
            }
            let now = self.frames();
            if now == seen {
                return None;
            }
            seen = now;
        }
    }
}

/// After a panic elsewhere, the body at worst ends with an error.
fn lock(reading: &Mutex<Reading>) -> MutexGuard<'_, Reading> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reading {
    fn poll_next(&mut self, context: &mut Context<'_>) -> PolledFrame<axum::Error> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.frames += 1;
        match &frame {
            None => self.has_ended = true,
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) if self.kept_bytes + data.len() <= MAX_KEPT_BYTES => {
                    self.kept_bytes += data.len();
                    if self.is_keeping {
                        self.kept.push(data.clone());
                    }
                }
                _ => self.is_keeping = false,
            },
            Some(Err(_)) => self.is_keeping = false,
        }
        Poll::Ready(frame)
    }
}

/// A body as one attempt reads it.
struct SentBody {
    reading: Arc<Mutex<Reading>>,
    sending: u64,
    /// How many of the kept pieces this attempt has read.
    position: usize,
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<axum::Error> {
        let this = &mut *self;
        let mut reading = lock(&this.reading);
        if reading.sending != this.sending {
            let sent_again = io::Error::other("the request is sent again");
            return Poll::Ready(Some(Err(axum::Error::new(sent_again))));
        }
        if let Some(kept) = reading.kept.get(this.position) {
            this.position += 1;
            return Poll::Ready(Some(Ok(Frame::data(kept.clone()))));
        }
        if !reading.is_keeping {
            reading.kept.clear();
            this.position = 0;
        }
        let frame = ready!(reading.poll_next(context));
        this.position = reading.kept.len();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let reading = lock(&self.reading);
        let is_read = self.position >= reading.kept.len();
        reading.sending == self.sending && is_read && (reading.has_ended || reading.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let reading = lock(&self.reading);
        let again = reading.kept.iter().skip(self.position).map(Bytes::len);
        let again: u64 = again.map(|bytes| bytes as u64).sum();
        let rest = reading.body.size_hint();
        let mut whole = SizeHint::new();
        whole.set_lower(rest.lower().saturating_add(again));
        if let Some(upper) = rest.upper() {
            whole.set_upper(upper.saturating_add(again));
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::{Body, Bytes};
    use axum::http::{HeaderMap, HeaderValue};
    use futures_util::stream;
    use http_body::Body as _;
    use http_body_util::BodyExt as _;

    use super::{IdentityHeaderNames, MAX_KEPT_BYTES, Upload};

    fn upload(body: Body, limit: u64, is_keeping: bool) -> Upload {
        Upload::new(body, limit, &IdentityHeaderNames::default(), is_keeping)
    }

    /// A body of these pieces.
    fn pieces(pieces: &[&'static [u8]]) -> Body {
        let pieces: Vec<Result<_, std::io::Error>> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait_and_progress_extends_it() {
        let limit = Duration::from_secs(60);
        let silent = upload(Body::empty(), 0, false);
        let waiting = silent.within(limit, std::future::pending::<()>());
        let waited = tokio::time::timeout(10 * limit, waiting).await;
        assert_eq!(waited.expect("it ends"), None);

        let moving = upload(Body::from("a byte"), 0, false);
        let mut body = moving.send();
        let slow = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            let _ = body.frame().await;
            tokio::time::sleep(Duration::from_secs(50)).await;
        };
        assert_eq!(moving.within(limit, slow).await, Some(()));
    }

    #[tokio::test]
    async fn a_body_may_have_its_length_and_no_more() {
        for (text, limit, fits) in [("12345", 5, true), ("123456", 5, false), ("123456", 0, true)] {
            let sent = upload(Body::from(text), limit, false).send();
            assert_eq!(sent.collect().await.is_ok(), fits, "{text} {limit}");
        }
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
        let collected = upload(body, 0, true).send().collect().await.unwrap();
        let names: Vec<&str> = collected
            .trailers()
            .unwrap()
            .keys()
            .map(|name| name.as_str())
            .collect();
        assert_eq!(names, ["checksum"]);
    }

    #[tokio::test]
    async fn a_small_body_is_sent_again_from_its_beginning_wherever_a_sending_broke() {
        for read in 0..=3 {
            let body = upload(pieces(&[b"one ", b"two ", b"three"]), 0, true);
            let mut broken = body.send();
            for _ in 0..read {
                broken.frame().await.unwrap().unwrap();
            }
            assert!(body.is_whole());
            let again = body.send();
            assert!(
                broken.frame().await.unwrap().is_err(),
                "an end would make a part the whole"
            );
            assert_eq!(
                again.collect().await.unwrap().to_bytes(),
                "one two three",
                "{read}"
            );
            let third = body.send();
            assert_eq!(third.collect().await.unwrap().to_bytes(), "one two three");
        }
    }

    #[tokio::test]
    async fn the_length_of_a_body_is_the_same_each_time() {
        let body = upload(Body::from("hello"), 0, true);
        let mut first = body.send();
        assert_eq!(first.size_hint().exact(), Some(5));
        first.frame().await.unwrap().unwrap();
        assert_eq!(
            (first.size_hint().exact(), first.is_end_stream()),
            (Some(0), true)
        );
        let again = body.send();
        assert_eq!(
            (again.size_hint().exact(), again.is_end_stream()),
            (Some(5), false)
        );
    }

    #[tokio::test]
    async fn what_is_long_forgotten_or_not_kept_is_not_sent_again_once_it_is_read() {
        static LONG: [u8; MAX_KEPT_BYTES] = [0; MAX_KEPT_BYTES];
        let long = upload(pieces(&[&LONG, b"a", b"b"]), 0, true);
        let mut sent = long.send();
        sent.frame().await.unwrap().unwrap();
        assert!(long.is_whole());
        sent.frame().await.unwrap().unwrap();
        assert!(!long.is_whole(), "one byte too many");
        assert_eq!(sent.collect().await.unwrap().to_bytes(), "b");

        let not_kept = upload(pieces(&[b"a", b"b"]), 0, false);
        let mut sent = not_kept.send();
        assert!(not_kept.is_whole(), "it is unread");
        sent.frame().await.unwrap().unwrap();
        assert!(!not_kept.is_whole());

        let forgotten = upload(pieces(&[b"a", b"b"]), 0, true);
        forgotten.send().frame().await.unwrap().unwrap();
        let again = forgotten.send();
        forgotten.forget();
        assert!(!forgotten.is_whole());
        assert_eq!(
            again.collect().await.unwrap().to_bytes(),
            "ab",
            "the last sending has all of it"
        );
    }
}
