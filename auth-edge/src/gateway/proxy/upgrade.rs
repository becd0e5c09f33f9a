//! Connections that become something else: WebSocket, from HTTP/1.1 (RFC 6455, section 4) and HTTP/2 (RFC 8441).
//!
//! Deliberately absent: every other protocol. `h2c` above all would open a road to the upstream past the guards.
//! The upstream, always asked by HTTP/1.1, decides: only its 101 joins the two connections, which then carry bytes both
//! ways until one side ends.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::keys;

/// How a client asks for a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// By `Upgrade`.
    Http1,
    /// By extended CONNECT.
    Http2,
}

/// Whether these headers ask to switch to a protocol that may be switched to.
#[must_use]
pub(in super::super) fn is_wanted(headers: &HeaderMap) -> bool {
    let lists_upgrade = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value
                .split(',')
                .any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
        });
    lists_upgrade
        && headers
            .get(header::UPGRADE)
            .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Whether and how a request asks for a WebSocket.
#[must_use]
pub(super) fn asked(request: &Request) -> Option<Asked> {
    if *request.method() == Method::CONNECT {
        let protocol = request.extensions().get::<Protocol>()?;
        return (protocol.as_str() == "websocket").then_some(Asked::Http2);
    }
    is_wanted(request.headers()).then_some(Asked::Http1)
}

/// Puts the wish into a request for the upstream.
pub(super) fn ask(asked: Asked, method: &mut Method, headers: &mut HeaderMap) {
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    if asked == Asked::Http2 {
        *method = Method::GET;
        // HTTP/2 has no such key; its value only has to be new (RFC 6455, section 4.1).
        let key = STANDARD.encode(keys::random::<16>().unwrap_or_default());
        if let Ok(key) = HeaderValue::try_from(key) {
            headers.insert(header::SEC_WEBSOCKET_KEY, key);
        }
    }
}

/// The upstream's consent as the client of either version understands it; the answer has lost its hop-by-hop headers.
pub(super) fn consent(asked: Asked, mut response: Response) -> Response {
    match asked {
        Asked::Http1 => {
            let headers = response.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        Asked::Http2 => {
            response.headers_mut().remove(header::SEC_WEBSOCKET_ACCEPT);
            *response.status_mut() = StatusCode::OK;
            *response.body_mut() = Body::empty();
        }
    }
    response
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
