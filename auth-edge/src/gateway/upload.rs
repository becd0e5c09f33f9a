//! Waiting for an upstream's answer while a request's body is still on its way.
//!
//! A large upload takes as long as the client's network takes; only silence counts as slow.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// Nothing moved for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stalled;

/// Counts the frames of a body as they leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<AtomicU64>);

/// A body that tells of its progress.
pub(super) fn watched(body: Body) -> (Body, Progress) {
    let progress = Progress::default();
    (
        Body::new(Watched {
            body,
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

struct Watched {
    body: Body,
    progress: Progress,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.progress.0.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use http_body_util::BodyExt as _;

    use super::{Stalled, watched, within};

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait_and_progress_extends_it() {
        let limit = Duration::from_secs(60);
        let (_, silent) = watched(Body::empty());
        assert_eq!(
            within(limit, &silent, std::future::pending::<()>()).await,
            Err(Stalled)
        );

        let (mut body, moving) = watched(Body::from("a byte"));
        let slow = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            let _ = body.frame().await;
            tokio::time::sleep(Duration::from_secs(50)).await;
        };
        assert_eq!(within(limit, &moving, slow).await, Ok(()));
    }
}
