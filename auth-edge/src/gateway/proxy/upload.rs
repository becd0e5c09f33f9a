//! The body of a request to an upstream, and waiting for the answer meanwhile.
//!
//! A large upload takes as long as the client's network takes; only silence counts as slow.
//!
//! Invariants
//! - A body never becomes longer than its route allows.
//! - Trailers obey the rules of headers, since some servers add them to those.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use http_body_util::Limited;

use super::super::headers;
use crate::http::mapped_body::{PolledFrame, map_polls};
use crate::route_table::upstream_headers::ToldNames;

/// Nothing moved for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stalled;

/// The client's body broke off, or its framing makes no sense (RFC 9112, section 7.1).
#[derive(Debug, thiserror::Error)]
#[error("the request's body cannot be read")]
pub(super) struct Unreadable(#[source] axum::Error);

/// Counts the frames of a body as they leave.
#[derive(Clone, Debug, Default)]
pub(super) struct UploadProgress(Arc<AtomicU64>);

/// A body of at most `limit` bytes (0 is no limit) that counts its progress, without trailers of the names that are `told`. One that is longer ends with
/// [`http_body_util::LengthLimitError`].
pub(super) fn limited(body: Body, limit: u64, told: &ToldNames) -> (Body, UploadProgress) {
    let progress = UploadProgress::default();
    let counted = progress.clone();
    let told = told.clone();
    let body = map_polls(body, move |_, polled: PolledFrame<axum::Error>, _| {
        polled.map(|frame| {
            counted.0.fetch_add(1, Ordering::Relaxed);
            frame.map(|frame| {
                frame
                    .map(|frame| headers::fit_frame(frame, &told))
                    .map_err(Unreadable)
            })
        })
    });
    let limit = match usize::try_from(limit) {
        Ok(limit) if limit > 0 => limit,
        _ => usize::MAX,
    };
    (Body::new(Limited::new(body, limit)), progress)
}

/// Waits for `answer`, and longer as long as the body moves.
pub(super) async fn within<F: Future>(
    limit: Duration,
    progress: &UploadProgress,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::{HeaderMap, HeaderValue};
    use http_body_util::BodyExt as _;

    use super::{Stalled, ToldNames, limited, within};

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait_and_progress_extends_it() {
        let limit = Duration::from_secs(60);
        let (_, silent) = limited(Body::empty(), 0, &ToldNames::default());
        let waiting = within(limit, &silent, std::future::pending::<()>());
        let waited = tokio::time::timeout(10 * limit, waiting).await;
        assert_eq!(waited.expect("it ends"), Err(Stalled));

        let (mut body, moving) = limited(Body::from("a byte"), 0, &ToldNames::default());
        let slow = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            let _ = body.frame().await;
            tokio::time::sleep(Duration::from_secs(50)).await;
        };
        assert_eq!(within(limit, &moving, slow).await, Ok(()));
    }

    #[tokio::test]
    async fn a_body_may_have_its_length_and_no_more() {
        assert!(
            limited(Body::from("12345"), 5, &ToldNames::default())
                .0
                .collect()
                .await
                .is_ok()
        );
        assert!(
            limited(Body::from("123456"), 5, &ToldNames::default())
                .0
                .collect()
                .await
                .is_err()
        );
        assert!(
            limited(Body::from("123456"), 0, &ToldNames::default())
                .0
                .collect()
                .await
                .is_ok()
        );
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
        let collected = limited(body, 0, &ToldNames::default()).0.collect().await.unwrap();
        let names: Vec<&str> = collected
            .trailers()
            .unwrap()
            .keys()
            .map(|name| name.as_str())
            .collect();
        assert_eq!(names, ["checksum"]);
    }
}
