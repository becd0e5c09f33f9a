//! A small server behind the edge: records requests, answers 200 or as scripted, echoes WebSockets.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use chassis::runtime::Workers;
use chassis::serve::PeerAddress;
use chassis::tls::ServerTls;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    /// The peer address of the request's connection.
    pub(crate) connection: Option<std::net::SocketAddr>,
}

impl Seen {
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap())
            .collect()
    }
}

/// The answer to a request; `None` for the default.
type Script = Box<dyn Fn(&Seen) -> Option<Response> + Send>;

#[derive(Clone, Default)]
struct Memory {
    seen: Arc<Mutex<Vec<Seen>>>,
    script: Arc<Mutex<Option<Script>>>,
}

/// A server that ends when dropped.
pub(crate) struct Upstream {
    address: std::net::SocketAddr,
    memory: Memory,
    stop: CancellationToken,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let memory = Memory::default();
        let router = Router::new().fallback(answer).with_state(memory.clone());
        Self::serve(router, memory, None).await
    }

    /// A server with this router, with TLS on request.
    pub(crate) async fn of(router: Router, tls: Option<ServerTls>) -> Self {
        Self::serve(router, Memory::default(), tls).await
    }

    async fn serve(router: Router, memory: Memory, tls: Option<ServerTls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(chassis::serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            tls,
            chassis::serve::Limits::default(),
            chassis::serve::Stopping::on(stop.clone()),
        ));
        Self {
            address,
            memory,
            stop,
        }
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.memory.seen.lock().unwrap().clone()
    }

    /// Answers with `script` from now on.
    pub(crate) fn answer_by(&self, script: impl Fn(&Seen) -> Option<Response> + Send + 'static) {
        *self.memory.script.lock().unwrap() = Some(Box::new(script));
    }
}

async fn answer(State(memory): State<Memory>, mut request: Request) -> Response {
    let target = request.uri().to_string();
    let seen = Seen {
        method: request.method().clone(),
        target: target.clone(),
        headers: request.headers().clone(),
        connection: request.extensions().get::<PeerAddress>().map(|peer| peer.0),
    };
    memory.seen.lock().unwrap().push(seen.clone());
    let scripted = memory
        .script
        .lock()
        .unwrap()
        .as_ref()
        .and_then(|script| script(&seen));
    if let Some(response) = scripted {
        return response;
    }
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
