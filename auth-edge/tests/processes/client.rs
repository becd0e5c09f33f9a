//! Clients that never retry, so that every request the edge loses is visible.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A client's protocol, and whether it keeps its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Http1Kept,
    Http1Each,
    Http2Kept,
    Http2Each,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Http1Kept, Self::Http1Each, Self::Http2Kept, Self::Http2Each];

    fn keeps(self) -> bool {
        matches!(self, Self::Http1Kept | Self::Http2Kept)
    }
}

/// Why a request got no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// No connection was made, so nothing was sent: any balancer tries the next server.
    Refused,
    /// The request is lost.
    Lost(String),
}

fn lost(error: impl std::fmt::Debug) -> Unanswered {
    Unanswered::Lost(format!("{error:?}"))
}

type Http2 = SendRequest<Empty<Bytes>>;

pub(crate) struct Client {
    kind: Kind,
    http1: HashMap<SocketAddr, TcpStream>,
    http2: HashMap<SocketAddr, Http2>,
}

impl Client {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            http1: HashMap::new(),
            http2: HashMap::new(),
        }
    }

    /// Requests a path, which must answer 200.
    pub(crate) async fn get(&mut self, address: SocketAddr, path: &str) -> Result<(), Unanswered> {
        match self.kind {
            Kind::Http1Kept | Kind::Http1Each => self.by_http1(address, path).await,
            Kind::Http2Kept | Kind::Http2Each => self.by_http2(address, path).await,
        }
    }

    async fn by_http1(&mut self, address: SocketAddr, path: &str) -> Result<(), Unanswered> {
        let mut stream = match self.http1.remove(&address) {
            Some(kept) => kept,
            None => connect(address).await?,
        };
        let connection = if self.kind.keeps() { "keep-alive" } else { "close" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: {connection}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(lost)?;
        let mut answer = Vec::new();
        let (head, length) = loop {
            if stream.read_buf(&mut answer).await.map_err(lost)? == 0 {
                return Err(lost(format!(
                    "closed after {:?}",
                    String::from_utf8_lossy(&answer)
                )));
            }
            if let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .and_then(|length| length.parse::<usize>().ok());
                let length = length.ok_or_else(|| lost(format!("no length in {head}")))?;
                break (head, end + 4 + length);
            }
        };
        while answer.len() < length {
            if stream.read_buf(&mut answer).await.map_err(lost)? == 0 {
                return Err(lost("closed within the body"));
            }
        }
        if !head.starts_with("http/1.1 200") {
            return Err(lost(head));
        }
        if self.kind.keeps() && !head.contains("connection: close") {
            self.http1.insert(address, stream);
        }
        Ok(())
    }

    async fn by_http2(&mut self, address: SocketAddr, path: &str) -> Result<(), Unanswered> {
        let request = || {
            hyper::Request::get(format!("http://{address}{path}"))
                .body(Empty::<Bytes>::new())
                .map_err(lost)
        };
        loop {
            let mut sender = match self.http2.remove(&address) {
                Some(kept) => kept,
                None => open(address).await?,
            };
            if sender.ready().await.is_err() {
                continue;
            }
            let answer = match sender.try_send_request(request()?).await {
                Ok(answer) => answer,
                Err(mut error) => match error.take_message() {
                    // The server closed before the request was sent.
                    Some(_unsent) => continue,
                    None => return Err(lost(error.into_error())),
                },
            };
            let status = answer.status();
            answer.into_body().collect().await.map_err(lost)?;
            if status != 200 {
                return Err(lost(status));
            }
            if self.kind.keeps() {
                self.http2.insert(address, sender);
            }
            return Ok(());
        }
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, Unanswered> {
    let stream = TcpStream::connect(address).await;
    stream.map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused => Unanswered::Refused,
        _ => lost(error),
    })
}

async fn open(address: SocketAddr) -> Result<Http2, Unanswered> {
    let stream = connect(address).await?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .map_err(lost)?;
    tokio::spawn(connection);
    Ok(sender)
}
