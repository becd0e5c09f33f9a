//! Connections that become WebSockets (RFC 6455, section 4).
//!
//! Deliberately absent: WebSockets over HTTP/2 (RFC 8441), because browsers then open an HTTP/1.1 connection. The
//! edge switches to no other protocol: `h2c` would open a connection to the upstream past the guards. A handshake has
//! no body and uses HTTP/1.1 on its own connection. After a 101, the edge joins both connections until one side
//! closes, the session ends, or the edge stops. In the last two cases the client receives a close frame, unless the
//! upstream is within a frame or has sent its own. The kernel closes a side that stops reading.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, Version, header};
use http_body::Body as _;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_util::io::InspectWriter;
use tokio_util::sync::CancellationToken;

use super::websocket_frames::{FramePosition, GOING_AWAY, POLICY_VIOLATION};
use crate::gateway::ending;
use crate::http::errors::HttpError;
use crate::http::protect::shares::Share;
use crate::sessions::OpenStream;
use crate::values::header_name::members;

/// A client answers a close frame within a round trip; a connection that is closed sooner may lose the frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether these headers request a switch to WebSocket.
fn is_wanted(headers: &HeaderMap) -> bool {
    let lists_upgrade = || {
        let mut tokens = members(headers, header::CONNECTION);
        tokens.any(|token| token.eq_ignore_ascii_case(b"upgrade"))
    };
    is_to_websocket(headers) && lists_upgrade()
}

/// Whether a request or an answer names WebSocket in `Upgrade`.
pub(super) fn is_to_websocket(headers: &HeaderMap) -> bool {
    headers
        .get(header::UPGRADE)
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Whether a request is a WebSocket handshake. HTTP/1.0 has no upgrade (RFC 9110, section 7.8).
///
/// # Errors
/// The method is not GET, or the request has a body: upstreams disagree on where such a request ends.
pub(in crate::gateway) fn is_handshake(request: &Request) -> Result<bool, HttpError> {
    if request.version() != Version::HTTP_11 || !is_wanted(request.headers()) {
        return Ok(false);
    }
    if *request.method() == Method::GET && request.body().is_end_stream() {
        Ok(true)
    } else {
        Err(HttpError::BadRequest(
            "Open a WebSocket with GET, without a body.",
        ))
    }
}

/// Adds the upgrade headers to a request or an answer that has lost its hop-by-hop headers.
pub(super) fn write_switch(headers: &mut HeaderMap) {
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
}

/// Joins both sides once they have switched, until one side ends, the session of `open` ends, or the edge is
/// `stopping`.
pub(super) fn join(
    (client, upstream): (OnUpgrade, OnUpgrade),
    open: Option<OpenStream>,
    stopping: CancellationToken,
    counted: Option<Share>,
) {
    tokio::spawn(async move {
        // The connection counts as an open request of its visitor.
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
        let mut sent = FramePosition::default();
        let mut client = InspectWriter::new(TokioIo::new(client), |bytes| sent.advance(bytes));
        let mut upstream = TokioIo::new(upstream);
        let frame = tokio::select! {
            // Such connections normally end when one side closes.
            _ = tokio::io::copy_bidirectional(&mut client, &mut upstream) => return,
            () = ending::wait_for_session_end(open.as_ref()) => POLICY_VIOLATION,
            () = stopping.cancelled() => GOING_AWAY,
        };
        drop(upstream);
        let client = client.into_inner();
        if sent.takes_frame() {
            close(client, frame).await;
        }
    });
}

/// Ends the client's side with a close frame.
async fn close(mut client: TokioIo<Upgraded>, frame: [u8; 4]) {
    let closing = async {
        client.write_all(&frame).await?;
        client.shutdown().await?;
        // The kernel resets a closed connection with unread bytes, and the client would lose the frame.
        tokio::io::copy(&mut client, &mut tokio::io::sink()).await
    };
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}
