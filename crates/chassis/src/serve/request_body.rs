//! The body of an HTTP/1.1 request, and whether the answer leaves part of it unread.
//!
//! The next request starts after the body, so a connection with an unread body cannot be reused. A client that
//! does not know this sends its next request on a closing connection, and may not be able to retry it (RFC
//! 9112, sections 9.3 and 9.6). So an answer to an unread request says that it is the connection's last.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

/// Whether the body of a request was read to its end.
pub(super) struct BodyEnd(Arc<AtomicBool>);

/// A body that records its end.
struct RequestBody {
    body: Incoming,
    is_read: Arc<AtomicBool>,
}

/// The request to process, and a handle that shows whether its body, if any, was read.
pub(super) fn watched(request: hyper::Request<Incoming>) -> (Request, Option<BodyEnd>) {
    if request.body().is_end_stream() {
        return (request.map(Body::new), None);
    }
    let is_read = Arc::<AtomicBool>::default();
    let end = BodyEnd(Arc::clone(&is_read));
    (
        request.map(|body| Body::new(RequestBody { body, is_read })),
        Some(end),
    )
}

impl BodyEnd {
    pub(super) fn is_read(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // Set before the reader sees the end, so that the answer to it comes later.
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
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
    use axum::Router;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::super::connection::tests::connected;

    /// Answers before it has read anything, or after it has read everything.
    fn router() -> Router {
        Router::new()
            .route("/refused", post(|| async { "answered" }))
            .route("/read", post(|_: axum::body::Bytes| async { "answered" }))
    }

    async fn answer(client: &mut DuplexStream, request: &str) -> String {
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"answered") {
            assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0);
        }
        String::from_utf8(answer).unwrap()
    }

    fn says_last(answer: &str) -> bool {
        answer.contains("connection: close\r\n")
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_before_the_body_is_the_last_and_says_so() {
        for rest in [
            "content-length: 100\r\n\r\n",
            "content-length: 100\r\n\r\nhalf",
            "transfer-encoding: chunked\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "transfer-encoding: chunked\r\n\r\n3\r\nno end",
            "content-length: 4\r\nexpect: 100-continue\r\n\r\n",
            "content-length: 4\r\n\r\nbody",
        ] {
            let (mut client, _draining) = connected(router());
            let request = format!("POST /refused HTTP/1.1\r\nhost: here\r\n{rest}");
            let answer = answer(&mut client, &request).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{rest:?}: {answer}");
            assert!(says_last(&answer), "{rest:?}: {answer}");
            assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "{rest:?}");
        }
    }

    #[tokio::test]
    async fn a_connection_is_kept_whose_body_was_read_or_is_empty() {
        let (mut client, _draining) = connected(router());
        for (path, rest) in [
            ("/refused", "content-length: 0\r\n\r\n"),
            ("/read", "content-length: 0\r\n\r\n"),
            ("/read", "content-length: 4\r\n\r\nbody"),
            (
                "/read",
                "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
            ),
            (
                "/read",
                &format!("content-length: 2000\r\n\r\n{}", "b".repeat(2_000)),
            ),
        ] {
            let request = format!("POST {path} HTTP/1.1\r\nhost: here\r\n{rest}");
            let answer = answer(&mut client, &request).await;
            assert!(!says_last(&answer), "{path} {rest:?}: {answer}");
        }
    }
}
