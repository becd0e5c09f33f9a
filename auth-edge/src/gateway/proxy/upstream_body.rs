//! The body of an upstream's answer to the client.
//!
//! Invariants
//! - Nothing is kept, each piece goes on as it comes.
//! - Trailers obey the rules of headers.
//! - A body that stays silent for too long ends with an error instead of holding its connection for ever.
//!
//! Only waiting for the upstream counts as silence: no data is read for a client that reads slowly.

use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body::Body as HttpBody;
use tokio::time::Sleep;

use super::super::headers;
use crate::http::mapped_body::map_polls;
use crate::route_table::upstream_headers::ToldNames;

/// The upstream has said nothing for too long.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the upstream has been silent for too long")]
pub(super) struct Silent;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Passes `body` on while it is silent for no longer than `idle`; `None` lets it be silent for ever.
pub(super) fn bounded<B>(body: B, idle: Option<Duration>) -> impl HttpBody<Data = Bytes, Error = BoxError>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    // Runs while the upstream is waited for.
    let mut waiting: Option<Pin<Box<Sleep>>> = None;
    // What is told to applications alone is no news for clients.
    let told = ToldNames::default();
    map_polls(body, move |context, polled, _| {
        if let Poll::Ready(frame) = polled {
            waiting = None;
            return Poll::Ready(frame.map(|frame| {
                frame
                    .map(|frame| headers::fit_frame(frame, &told))
                    .map_err(Into::into)
            }));
        }
        let Some(idle) = idle else {
            return Poll::Pending;
        };
        let waiting = waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
        waiting.as_mut().poll(context).map(|()| Some(Err(Silent.into())))
    })
}

/// No body, of which nothing says how long it is.
pub(super) fn of_unknown_length() -> Body {
    Body::from_stream(futures_util::stream::empty::<Result<Bytes, Infallible>>())
}

/// Whether an answer may be silent as long as it likes: it is a stream of events.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .map(|kind| kind.as_bytes().to_ascii_lowercase())
        .unwrap_or_default();
    kind.starts_with(b"text/event-stream") || kind.starts_with(b"application/grpc")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use http_body::Frame;
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_body_unless_it_may_be_silent() {
        let limit = Some(Duration::from_secs(300));
        let silent = || StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
        let mut cut = bounded(Box::pin(silent()), limit);
        let ended = tokio::time::timeout(Duration::from_secs(86_400), cut.frame()).await;
        let ended = ended.expect("it is cut off");
        assert!(ended.unwrap().unwrap_err().is::<Silent>());

        let mut patient = bounded(Box::pin(silent()), None);
        let waited = tokio::time::timeout(Duration::from_secs(86_400), patient.frame()).await;
        assert!(waited.is_err(), "still waiting after a day");
    }

    #[tokio::test]
    async fn what_comes_goes_on_as_it_is() {
        let body = bounded(Full::new(Bytes::from_static(b"a body")), None);
        assert_eq!(body.size_hint().exact(), Some(6));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "a body");
    }

    #[tokio::test]
    async fn trailers_carry_neither_identity_nor_cookies_of_ours() {
        let mut trailers = HeaderMap::new();
        for name in ["set-cookie", "x_auth_subject", "connection", "checksum"] {
            trailers.insert(name, HeaderValue::from_static("evil"));
        }
        let body = Full::new(Bytes::from_static(b"a")).with_trailers(std::future::ready(Some(Ok(trailers))));
        let collected = bounded(Box::pin(body), None).collect().await.unwrap();
        let names: Vec<&str> = collected
            .trailers()
            .unwrap()
            .keys()
            .map(|name| name.as_str())
            .collect();
        assert_eq!(names, ["checksum"]);
    }

    #[test]
    fn event_streams_and_grpc_may_be_silent() {
        for (kind, expected) in [
            ("text/event-stream; charset=utf-8", true),
            ("application/grpc+proto", true),
            ("application/json", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            assert_eq!(is_stream(&headers), expected, "{kind}");
        }
    }
}
