//! A server behind the edge that trusts only the framing it reads (RFC 9112, section 6.3). It keeps each
//! message whole, with its connection.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The moment the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// After the head.
    Early,
    /// After the body.
    Late,
}

/// A message with its framing.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Which connection, counted from 0.
    pub(crate) connection: usize,
    pub(crate) head: String,
    /// As received, with the sizes of its chunks.
    pub(crate) body: String,
}

impl Message {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim()).collect()
    }
}

/// The server; it ends when dropped.
pub(crate) struct Recorder {
    address: std::net::SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Recorder {
    /// Answers each message with `answer`, written in one piece.
    pub(crate) async fn start(when: When, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let messages = Arc::<Mutex<Vec<Message>>>::default();
        let kept = Arc::clone(&messages);
        let accepting = tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let _ = converse(stream, connection, when, answer, &kept).await;
                });
            }
        });
        Self {
            address,
            messages,
            accepting,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.messages.lock().unwrap().clone()
    }
}

async fn converse(
    mut stream: TcpStream,
    connection: usize,
    when: When,
    answer: &str,
    kept: &Mutex<Vec<Message>>,
) -> std::io::Result<()> {
    loop {
        let head = until(&mut stream, "\r\n\r\n").await?;
        let mut message = Message {
            connection,
            head,
            body: String::new(),
        };
        if when == When::Early {
            stream.write_all(answer.as_bytes()).await?;
        }
        let at = {
            let mut kept = kept.lock().unwrap();
            kept.push(message.clone());
            kept.len() - 1
        };
        if message.all("transfer-encoding") == ["chunked"] {
            message.body = until(&mut stream, "0\r\n\r\n").await?;
        } else if let [length] = message.all("content-length")[..] {
            let mut body = vec![0; length.parse().unwrap_or_default()];
            stream.read_exact(&mut body).await?;
            message.body = String::from_utf8_lossy(&body).into_owned();
        }
        kept.lock().unwrap()[at] = message;
        if when == When::Late {
            stream.write_all(answer.as_bytes()).await?;
        }
    }
}

async fn until(stream: &mut TcpStream, end: &str) -> std::io::Result<String> {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        read.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}
