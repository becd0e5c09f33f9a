//! HTTP/2 connections within a process.

use axum::Router;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::io::DuplexStream;

/// Bytes in transit in each direction. A longer message takes several turns.
const BUFFER_BYTES: usize = 64 * 1024;

/// Connects to the services of a router. Both ends run on the current runtime, so a call wakes no other
/// thread. The server's end closes with the client's. Panics outside a tokio runtime.
pub fn connect_in_memory(router: Router) -> DuplexStream {
    let (client, server) = tokio::io::duplex(BUFFER_BYTES);
    let serving = http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(server), TowerToHyperService::new(router));
    tokio::spawn(async move {
        // The client receives every failure, too.
        let _ = serving.await;
    });
    client
}
