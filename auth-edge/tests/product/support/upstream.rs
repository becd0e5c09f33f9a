//! A small server behind the edge: keeps what it got, answers 200, joins WebSockets to an echo.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the upstream got.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
}

impl Seen {
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.headers
            .get_all(name)
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
            .collect()
    }
}

/// A server that ends when dropped.
pub(crate) struct Upstream {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: CancellationToken,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&seen));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(chassis::serve::serve(listener, router, None, stop.clone()));
        Self { address, seen, stop }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer(State(seen): State<Arc<Mutex<Vec<Seen>>>>, mut request: Request) -> Response {
    let target = request.uri().to_string();
    seen.lock().unwrap().push(Seen {
        target: target.clone(),
        headers: request.headers().clone(),
    });
    if request
        .headers()
        .get("upgrade")
        .is_some_and(|protocol| protocol == "websocket")
    {
        let switched = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut socket = TokioIo::new(switched.await.unwrap());
            let mut said = [0; 4];
            tokio::io::AsyncReadExt::read_exact(&mut socket, &mut said)
                .await
                .unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut socket, &said)
                .await
                .unwrap();
            tokio::io::AsyncWriteExt::shutdown(&mut socket).await.unwrap();
        });
        return (
            StatusCode::SWITCHING_PROTOCOLS,
            [("connection", "upgrade"), ("upgrade", "websocket")],
        )
            .into_response();
    }
    let mut response = "upstream".into_response();
    response
        .headers_mut()
        .insert("cache-control", "public, max-age=60".parse().unwrap());
    if target.ends_with("/set-cookies") {
        for cookie in [
            "theme=dark; Path=/",
            "session=evil; Path=/",
            "SESSION=evil; Path=/",
            "session_login_x=evil; Path=/",
        ] {
            response
                .headers_mut()
                .append("set-cookie", cookie.parse().unwrap());
        }
    }
    response
}
