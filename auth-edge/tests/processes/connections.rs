//! The idle timeouts of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::process::{LONGEST_WAIT, Process, serve};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

async fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    socket.connect(to).await.unwrap()
}

async fn read(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(LONGEST_WAIT, stream.read(&mut answer)).await;
    assert!(read.is_ok(), "neither an answer nor an end");
    let length = read.unwrap()?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// Whether the peer has closed, after any remaining data.
async fn is_closed(stream: &mut TcpStream) -> bool {
    loop {
        match read(stream).await {
            Ok(said) if said.is_empty() => return true,
            Ok(_) => {}
            Err(_reset) => return true,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http2_connection_that_asks_for_nothing_is_closed() {
    let (upstream, _stop) = serve(Router::new()).await;
    let edge = Process::start(upstream, &[]).await;
    let mut silent = from(2, edge.address).await;
    silent.write_all(PREFACE).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(15), is_closed(&mut silent)).await;
    assert_eq!(closed, Ok(true));
}
