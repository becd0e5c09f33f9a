//! The body of an upstream's answer to the client.
//!
//! Invariants
//! - Each piece is forwarded as it arrives; nothing is stored.
//! - Trailers obey the rules of headers.
//! - A body that is silent for too long ends with an error, so that it does not hold its connection forever.
//!
//! Only waiting for the upstream counts as silence: a slow client delays the reads.

use std::convert::Infallible;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use http_body::Body as HttpBody;
use tokio::time::Sleep;

use crate::gateway::ending::StreamKind;
use crate::gateway::headers;
use crate::http::mapped_body::map_polls;
use crate::route_table::upstream_headers::IdentityHeaderNames;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The longest silence within an answer that is no stream: five times nginx's `proxy_read_timeout`. Some
/// answers are computed while they are sent.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Forwards an answer, and limits the silence of its body to [`SILENCE_MAX`]. Streams may be silent forever.
pub(super) fn bounded<B>(answer: hyper::Response<B>) -> Response
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let longest = (!is_stream(answer.headers())).then_some(SILENCE_MAX);
    answer.map(|body| Body::new(within(body, longest)))
}

fn within<B>(body: B, longest: Option<Duration>) -> impl HttpBody<Data = Bytes, Error = BoxError>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    // Runs while the edge waits for the upstream.
    let mut waiting: Option<Pin<Box<Sleep>>> = None;
    // The names of identity headers only matter in requests.
    let identity_names = IdentityHeaderNames::default();
    map_polls(body, move |context, polled| {
        if polled.is_ready() {
            waiting = None;
            return headers::fit_frame(polled, &identity_names).map_err(Into::into);
        }
        let Some(longest) = longest else {
            return Poll::Pending;
        };
        let silent = |()| io::Error::other("the upstream has been silent for too long");
        let waiting = waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(longest)));
        waiting
            .as_mut()
            .poll(context)
            .map(silent)
            .map(|error| Some(Err(error.into())))
    })
}

/// An empty body of unknown length.
pub(super) fn of_unknown_length() -> Body {
    Body::from_stream(futures_util::stream::empty::<Result<Bytes, Infallible>>())
}

/// Whether an answer may be silent without limit: it is a stream of events.
fn is_stream(headers: &HeaderMap) -> bool {
    headers::is_grpc(headers) || StreamKind::of(headers).is_some()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, header};
    use http_body::Frame;
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_body_unless_it_may_be_silent() {
        let silent = |kind: &'static str| {
            let body = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
            let answer = hyper::Response::builder().header(header::CONTENT_TYPE, kind);
            bounded(answer.body(Box::pin(body)).unwrap()).into_body()
        };
        let began = tokio::time::Instant::now();
        let cut = silent("application/json").frame().await.unwrap().unwrap_err();
        assert!(cut.to_string().contains("silent"), "{cut}");
        assert_eq!(began.elapsed(), SILENCE_MAX);

        let mut patient = silent("text/event-stream");
        let waited = tokio::time::timeout(Duration::from_secs(86_400), patient.frame()).await;
        assert!(waited.is_err(), "still waiting after a day");
    }

    #[tokio::test]
    async fn what_comes_goes_on_as_it_is() {
        let body = within(Full::new(Bytes::from_static(b"a body")), None);
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
        let collected = within(Box::pin(body), None).collect().await.unwrap();
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
