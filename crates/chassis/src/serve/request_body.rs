//! The body of a request over HTTP/1.1, and what its answer leaves of it.
//!
//! The next request begins where the body ends, so a connection whose answer came before that cannot be kept; a client that is not told
//! so sends its next request into the end of the connection, and may not send it again (RFC 9112, sections 9.3 and 9.6). So:
//! - What has come already of a body that nobody reads is passed over, up to a bound.
//! - If that was not all of it, the answer says that it is the connection's last.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;

/// Bytes passed over to keep a connection: another one costs less than more of them. A form fits.
const PASSED_OVER_MAX: usize = 64 * 1024;

/// What is left of a body when its answer begins.
pub(super) struct Rest {
    state: Arc<Mutex<State>>,
    /// The client sends the body only when it is asked to (RFC 9110, section 10.1.1), which reading it does.
    waits_to_be_asked: bool,
}

enum State {
    /// Somebody has it.
    Open,
    /// It was read to its end.
    Read,
    /// Nobody will read it.
    Dropped(Incoming),
}

/// A body that is given back if it is dropped before its end.
struct RequestBody {
    body: Option<Incoming>,
    state: Arc<Mutex<State>>,
}

/// The request as it goes on, and what will be left of its body if it has one.
pub(super) fn watched(request: hyper::Request<Incoming>) -> (Request, Option<Rest>) {
    if request.body().is_end_stream() {
        return (request.map(Body::new), None);
    }
    let waits_to_be_asked = request.headers().contains_key(EXPECT);
    let state = Arc::new(Mutex::new(State::Open));
    let rest = Rest {
        state: Arc::clone(&state),
        waits_to_be_asked,
    };
    let request = request.map(|body| {
        Body::new(RequestBody {
            body: Some(body),
            state,
        })
    });
    (request, Some(rest))
}

impl Rest {
    /// Whether the body was read to its end, or what nobody wants of it has come already.
    pub(super) async fn arrived(self) -> bool {
        let state = std::mem::replace(&mut *lock(&self.state), State::Open);
        match state {
            State::Open => false,
            State::Read => true,
            State::Dropped(body) => !self.waits_to_be_asked && pass_over(body).await,
        }
    }
}

/// Reads on as long as there is something at every turn of the connection. Whether that was all.
async fn pass_over(mut body: Incoming) -> bool {
    let (mut bytes, mut came) = (0, true);
    while bytes <= PASSED_OVER_MAX {
        match std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context))).await {
            Poll::Ready(None) => return true,
            Poll::Ready(Some(Err(_))) => return false,
            Poll::Ready(Some(Ok(frame))) => {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                came = true;
            }
            Poll::Pending if came => {
                came = false;
                // The connection reads before it goes on with the answer.
                tokio::task::yield_now().await;
            }
            Poll::Pending => return false,
        }
    }
    false
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(&mut *body).poll_frame(context);
        // Before whoever reads it can know: what they answer to the end of a body comes after it.
        if matches!(polled, Poll::Ready(None)) || body.is_end_stream() {
            *lock(&self.state) = State::Read;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        if matches!(*state, State::Open)
            && let Some(body) = self.body.take()
        {
            *state = State::Dropped(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::super::connection::tests::connected;
    use super::PASSED_OVER_MAX;

    /// Answers before it has read anything, and after it has read all.
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
        let too_long = format!("content-length: {}\r\n\r\n", PASSED_OVER_MAX + 1);
        for rest in [
            "content-length: 100\r\n\r\n",
            "content-length: 100\r\n\r\nhalf",
            "transfer-encoding: chunked\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "transfer-encoding: chunked\r\n\r\n3\r\nno end",
            "content-length: 4\r\nexpect: 100-continue\r\n\r\n",
            &too_long,
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
    async fn a_connection_is_kept_whose_body_has_come_or_was_read() {
        let (mut client, _draining) = connected(router());
        for path in ["/refused", "/read"] {
            for rest in [
                "content-length: 0\r\n\r\n",
                "content-length: 4\r\n\r\nbody",
                "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
                &format!("content-length: 2000\r\n\r\n{}", "b".repeat(2_000)),
            ] {
                let request = format!("POST {path} HTTP/1.1\r\nhost: here\r\n{rest}");
                let answer = answer(&mut client, &request).await;
                assert!(!says_last(&answer), "{path} {rest:?}: {answer}");
            }
        }
    }
}
