//! Connections that become something else: WebSocket (RFC 6455, section 4).
//!
//! Deliberately absent: every other protocol. `h2c` above all would open a road to the upstream past the guards.
//! The upstream decides: only its 101 joins the two connections, which then carry bytes both ways until one side ends.

use axum::http::{HeaderMap, HeaderValue, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// The protocol a request wants to switch to, if it wants to and may.
#[must_use]
pub(super) fn wanted(headers: &HeaderMap) -> Option<HeaderValue> {
    let lists_upgrade = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value
                .split(',')
                .any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
        });
    let websocket = |value: &&HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    headers
        .get(header::UPGRADE)
        .filter(websocket)
        .filter(|_| lists_upgrade)
        .cloned()
}

/// Joins the two sides once both have switched.
pub(super) fn join(client: OnUpgrade, upstream: OnUpgrade) {
    tokio::spawn(async move {
        let (client, upstream) = match tokio::try_join!(client, upstream) {
            Ok(both) => both,
            Err(error) => {
                tracing::debug!(%error, "a connection did not switch protocols");
                return;
            }
        };
        // Either side hanging up is how such connections end.
        let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(upstream)).await;
    });
}
