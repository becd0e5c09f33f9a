//! The bounds of the benchmarks: the same libraries without our code, on one single-threaded runtime for each core, as
//! in our services.
//!
//! ```text
//! bound json    127.0.0.1:8080 300                     bare axum: answers with 300 bytes of JSON
//! bound edge    127.0.0.1:8080 127.0.0.1:9090          bare axum that asks the next one, each time
//! bound session 127.0.0.1:9090 redis://127.0.0.1:6379  bare tonic that asks Redis, each time
//! ```

mod chain;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

const USAGE: &str = "usage: bound json ADDRESS BYTES | edge ADDRESS ADDRESS | session ADDRESS REDIS-URL";

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, address, target] = &arguments[..] else {
        return Err(io::Error::other(USAGE));
    };
    let address: SocketAddr = address.parse().map_err(io::Error::other)?;
    match role.as_str() {
        "json" => {
            let bytes: usize = target.parse().map_err(io::Error::other)?;
            let body = format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)));
            on_each_core(|| serve(address, json(body.clone())))
        }
        "edge" => {
            let session = format!("http://{target}");
            on_each_core(|| serve(address, chain::edge(session.clone())))
        }
        "session" => chain::session(address, target),
        _ => Err(io::Error::other(USAGE)),
    }
}

async fn json(body: String) -> io::Result<Router> {
    let answer = move || {
        let body = body.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], body) }
    };
    Ok(Router::new().fallback(answer))
}

/// Serves with a socket of this runtime's own.
async fn serve(address: SocketAddr, router: impl Future<Output = io::Result<Router>>) -> io::Result<()> {
    let router = router.await?;
    axum::serve(listen(address)?, router).await
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

/// Runs the same work on a thread with a runtime for each core.
fn on_each_core<F: Future<Output = io::Result<()>>>(work: impl Fn() -> F + Sync) -> io::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|_| scope.spawn(|| runtime()?.block_on(work())))
            .collect();
        workers.into_iter().try_for_each(|worker| {
            let ended = worker.join();
            ended.map_err(|_| io::Error::other("a worker panicked"))?
        })
    })
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
