//! The bound we measure ourselves by: bare axum that answers every request with the same small JSON text, one
//! single-threaded scheduler for each core as our services have.
//!
//! ```text
//! bound 127.0.0.1:8080 300      answers with 300 bytes on this address
//! ```

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header;
use tokio::net::TcpSocket;
use tokio::runtime::Builder;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || io::Error::other("usage: bound ADDRESS BYTES");
    let address: SocketAddr = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .ok_or_else(usage)?;
    let bytes: usize = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .ok_or_else(usage)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers: Vec<_> = (0..cores)
        .map(|_| std::thread::spawn(move || serve(address, bytes)))
        .collect();
    for worker in workers {
        worker
            .join()
            .map_err(|_| io::Error::other("a worker panicked"))??;
    }
    Ok(())
}

fn serve(address: SocketAddr, bytes: usize) -> io::Result<()> {
    Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.set_reuseport(true)?;
            socket.bind(address)?;
            let body = format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)));
            let answer = move || {
                let body = body.clone();
                async move { ([(header::CONTENT_TYPE, "application/json")], body) }
            };
            axum::serve(socket.listen(1024)?, Router::new().fallback(answer)).await
        })
}
