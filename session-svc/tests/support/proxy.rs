//! A connection to a server that the test can cut or slow down.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// The largest piece in transit, in bytes.
const PIECE: usize = 16_384;

/// Forwards from its own port until dropped.
pub(crate) struct Proxy {
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    delay_ms: Arc<AtomicU64>,
    is_cut: watch::Sender<bool>,
}

impl Proxy {
    /// Forwards to a port of loopback.
    pub(crate) async fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            delay_ms: Arc::default(),
            is_cut: watch::Sender::new(false),
        };
        let (delay_ms, cut) = (Arc::clone(&proxy.delay_ms), proxy.is_cut.subscribe());
        tokio::spawn(async move {
            while cut.has_changed().is_ok() {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(forward(client, target, Arc::clone(&delay_ms), cut.clone()));
            }
        });
        proxy
    }

    /// Delays the server's data by this from now on.
    pub(crate) fn delay(&self, delay: Duration) {
        self.delay_ms.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// Cuts every connection, and rejects new ones.
    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }
}

async fn forward(client: TcpStream, target: u16, delay_ms: Arc<AtomicU64>, mut cut: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else {
        return;
    };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        _ = cut.wait_for(|cut| *cut) => {}
        () = copy(from_client, to_server, Arc::default()) => {}
        () = copy(from_server, to_client, delay_ms) => {}
    }
}

/// Each piece leaves when its delay has passed; the later pieces wait no longer than it.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay_ms: Arc<AtomicU64>) {
    let (sender, mut pieces) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async move {
        let mut piece = vec![0; PIECE];
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            let delay = Duration::from_millis(delay_ms.load(Ordering::SeqCst));
            if sender
                .send((Instant::now() + delay, piece[..count].to_vec()))
                .is_err()
            {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((due, piece)) = pieces.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}
