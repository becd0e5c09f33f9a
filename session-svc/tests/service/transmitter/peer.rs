//! A scripted receiver, correct or faulty, that records what it received.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::within;

/// The receiver's reaction to a request.
#[derive(Clone)]
pub(crate) enum Does {
    /// Answers with this status, content type and body, and this header.
    Answers(u16, &'static str, String, &'static str),
    /// Never answers.
    Hangs,
    /// Closes in the middle of its answer.
    Closes,
}

/// Accepts the event.
pub(crate) fn accepts() -> Does {
    Does::Answers(202, "text/plain", String::new(), "x-nothing: 1")
}

/// Answers with a status only.
pub(crate) fn status(status: u16) -> Does {
    Does::Answers(status, "text/plain", "no".to_owned(), "x-nothing: 1")
}

/// Refuses the event with this code.
pub(crate) fn refuses(code: &str) -> Does {
    let body = format!(r#"{{"err":"{code}","description":"no"}}"#);
    Does::Answers(400, "application/json", body, "content-language: en")
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Pushed {
    pub(crate) head: String,
    pub(crate) token: String,
}

#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) url: String,
    does: Arc<Mutex<VecDeque<Does>>>,
    always: Arc<Mutex<Does>>,
    got: watch::Sender<Vec<Pushed>>,
}

impl Peer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Self {
            url: format!("http://{}/events", listener.local_addr().unwrap()),
            does: Arc::default(),
            always: Arc::new(Mutex::new(accepts())),
            got: watch::Sender::new(Vec::new()),
        };
        let serving = peer.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let peer = serving.clone();
                tokio::spawn(async move { peer.serve(connection).await });
            }
        });
        peer
    }

    /// Does this with the next unscripted request.
    pub(crate) fn next(&self, does: Does) {
        self.does.lock().unwrap().push_back(does);
    }

    /// Does this with all others.
    pub(crate) fn always(&self, does: Does) {
        *self.always.lock().unwrap() = does;
    }

    pub(crate) fn got(&self) -> Vec<Pushed> {
        self.got.borrow().clone()
    }

    /// The requests received, once there are this many.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Pushed> {
        let mut got = self.got.subscribe();
        let got = within(got.wait_for(|got| got.len() >= count)).await.unwrap();
        got.clone()
    }

    async fn serve(&self, mut connection: TcpStream) {
        let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
        let (head, body) = loop {
            match connection.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            }
            let text = String::from_utf8(bytes.clone()).unwrap();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if body.len() >= length {
                break (text.split_once("\r\n\r\n").unwrap().0.to_owned(), body.to_owned());
            }
        };
        let scripted = self.does.lock().unwrap().pop_front();
        let does = scripted.unwrap_or_else(|| self.always.lock().unwrap().clone());
        self.got.send_modify(|got| got.push(Pushed { head, token: body }));
        match does {
            Does::Answers(status, kind, body, header) => {
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} As Told\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n{header}\r\n\r\n{body}"
                );
                // A client may close before it has read the whole answer.
                let _written = connection.write_all(answer.as_bytes()).await;
            }
            Does::Hangs => std::future::pending().await,
            Does::Closes => {
                let _written = connection.write_all(b"HTTP/1.1 202 Acc").await;
            }
        }
    }
}
