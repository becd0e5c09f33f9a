//! Connections that become something else: WebSocket, from HTTP/1.1 (RFC 6455, section 4) and HTTP/2 (RFC 8441).
//!
//! Deliberately absent: every other protocol. `h2c` above all would open a connection to the upstream past the guards.
//! A handshake has no body. The upstream gets it by HTTP/1.1 on a connection of its own and decides: only its 101 joins the
//! two connections, which then carry bytes both ways until one side ends, stalls for too long, the session ends, or the edge stops.
//! The client gets a close frame in the last two cases, unless the upstream is in the middle of a frame or has sent its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chassis::random;
use http_body::Body as _;
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::websocket_frames::{FramePosition, GOING_AWAY, POLICY_VIOLATION};
use crate::gateway::ending;
use crate::http::errors::HttpError;
use crate::http::protect::load::Admitted;
use crate::sessions::OpenStream;
use crate::values::header_name::members;

/// A client answers a close frame within a round trip; a connection that is closed sooner may lose the frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How a client opens a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum WebSocketHandshake {
    /// By `Upgrade`.
    Http1,
    /// By extended CONNECT.
    Http2,
}

/// Whether these headers request a switch to a protocol that may be switched to.
fn is_wanted(headers: &HeaderMap) -> bool {
    let lists_upgrade = || {
        let mut tokens = members(headers, header::CONNECTION);
        tokens.any(|token| token.eq_ignore_ascii_case(b"upgrade"))
    };
    headers
        .get(header::UPGRADE)
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && lists_upgrade()
}

/// The WebSocket handshake a request is, if it is one. HTTP/1.0 knows no upgrade (RFC 9110, section 7.8).
///
/// # Errors
/// Its method is not GET, or it has a body: upstreams disagree on where such a request ends.
pub(in crate::gateway) fn handshake(request: &Request) -> Result<Option<WebSocketHandshake>, HttpError> {
    let headers = request.headers();
    let handshake = if *request.method() == Method::CONNECT {
        let protocol = request.extensions().get::<Protocol>();
        protocol
            .is_some_and(|protocol| protocol.as_str() == "websocket")
            .then_some(WebSocketHandshake::Http2)
    } else {
        (request.version() != Version::HTTP_10 && is_wanted(headers)).then_some(WebSocketHandshake::Http1)
    };
    let well_formed = match handshake {
        None => true,
        // A length beside a tunnel is the length of nothing.
        Some(WebSocketHandshake::Http2) => !headers.contains_key(header::CONTENT_LENGTH),
        Some(WebSocketHandshake::Http1) => *request.method() == Method::GET && request.body().is_end_stream(),
    };
    if well_formed {
        Ok(handshake)
    } else {
        Err(HttpError::BadRequest(
            "A WebSocket is asked for by GET, without a body.",
        ))
    }
}

/// Writes the handshake into a request for the upstream.
pub(super) fn request_upgrade(handshake: WebSocketHandshake, method: &mut Method, headers: &mut HeaderMap) {
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    *method = Method::GET;
    if handshake == WebSocketHandshake::Http2 {
        // HTTP/2 has no such key; its value only has to be new (RFC 6455, section 4.1).
        let key = STANDARD.encode(random::bytes::<16>().unwrap_or_default());
        if let Ok(key) = HeaderValue::try_from(key) {
            headers.insert(header::SEC_WEBSOCKET_KEY, key);
        }
    }
}

/// The upstream's 101 as the client of either version understands it; the answer has lost its hop-by-hop headers.
pub(super) fn switched(handshake: WebSocketHandshake, mut response: Response) -> Response {
    match handshake {
        WebSocketHandshake::Http1 => {
            let headers = response.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        WebSocketHandshake::Http2 => {
            response.headers_mut().remove(header::SEC_WEBSOCKET_ACCEPT);
            *response.status_mut() = StatusCode::OK;
            *response.body_mut() = Body::empty();
        }
    }
    response
}

/// Joins the two sides once both have switched, until one of them ends or stalls for `timeout`, until
/// the session ends that `open` is for, or until the edge is `stopping`.
pub(super) fn join(
    (client, upstream): (OnUpgrade, OnUpgrade),
    timeout: Duration,
    open: Option<OpenStream>,
    stopping: CancellationToken,
    counted: Option<Arc<Admitted>>,
) {
    tokio::spawn(async move {
        // For its visitor it is a request that goes on.
        let _counted = counted;
        let (client, upstream) = match tokio::try_join!(client, upstream) {
            Ok(both) => both,
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "a connection did not switch protocols"
                );
                return;
            }
        };
        let mut client = StallTimeout::of(TokioIo::new(client), timeout);
        let mut upstream = StallTimeout::of(TokioIo::new(upstream), timeout);
        let frame = tokio::select! {
            // Either side hanging up is how such connections end.
            _ = tokio::io::copy_bidirectional(&mut client, &mut upstream) => return,
            () = ending::ended(open.as_ref()) => POLICY_VIOLATION,
            () = stopping.cancelled() => GOING_AWAY,
        };
        drop(upstream);
        close(client, frame).await;
    });
}

/// Ends the client's side with a close frame, where one may follow what was sent.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut client: StallTimeout<S>, frame: [u8; 4]) {
    if !client.sent.takes_frame() {
        return;
    }
    let closing = async {
        client.write_all(&frame).await?;
        client.shutdown().await?;
        // The kernel resets a connection that is closed with bytes unread, and the client would lose the frame.
        tokio::io::copy(&mut client, &mut tokio::io::sink()).await
    };
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

/// One of the two sides, given up when it stalls. The kernel sees whether a whole connection stalls; a stream of HTTP/2
/// stalls within one that lives.
struct StallTimeout<S> {
    stream: S,
    /// Where the frames stand that were written.
    sent: FramePosition,
    timeout: Duration,
    /// Runs while a read or a write is pending.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> StallTimeout<S> {
    fn of(stream: S, timeout: Duration) -> Self {
        Self {
            stream,
            sent: FramePosition::default(),
            timeout,
            waiting: None,
        }
    }

    fn within<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let timeout = self.timeout;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        waiting
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, buffer);
        if let Poll::Ready(Ok(written)) = polled {
            self.sent.advance(&buffer[..written]);
        }
        self.within(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.within(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(polled, context)
    }
}
