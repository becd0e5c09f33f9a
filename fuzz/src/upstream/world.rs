//! An edge, upstreams that strictly read its messages, and a client that sends bytes.

use std::io::Write as _;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use scripted_provider::ScriptedProvider;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::message::{Head, HungUp};
use super::{Outcome, Upstream};
use crate::Target as _;
use crate::edge::world::{edge, put};

/// After this time without an answer, the edge waits for more of the request.
const SILENCE: Duration = Duration::from_millis(40);

/// No connection to an upstream outlives its client this long, unless something hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// The connection then closes: each checked message is the first one on its connection.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

impl Upstream {
    /// The start of its route, and the route's guard.
    fn route(self) -> (&'static str, &'static str) {
        match self {
            Self::Late => ("/late", "none"),
            Self::Early => ("/early", "none"),
            Self::Guarded => ("/guarded", "api"),
        }
    }
}

pub(super) struct World {
    runtime: tokio::runtime::Runtime,
    address: SocketAddr,
    /// One input at a time, so that arriving messages belong to it.
    upstream: Mutex<Receiver<Result<(), String>>>,
    open: Arc<AtomicUsize>,
    /// The edge rereads the file.
    _table: NamedTempFile,
    _provider: ScriptedProvider,
}

impl World {
    pub(super) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let provider = ScriptedProvider::start();
        let (results, upstream) = channel();
        let open = Arc::<AtomicUsize>::default();
        let (address, table) = runtime.block_on(async {
            let mut table = String::new();
            for of in Upstream::ALL {
                let (path, guard) = of.route();
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let port = listener.local_addr().unwrap().port();
                table += &format!("[[route]]\npath = \"{path}/*\"\nguard = \"{guard}\"\nupstream = \"http://127.0.0.1:{port}\"\n");
                tokio::spawn(accept(listener, *of, results.clone(), Arc::clone(&open)));
            }
            let mut file = NamedTempFile::new().unwrap();
            file.write_all(table.as_bytes()).unwrap();
            // No client has a session here: the edge does not call the session service.
            let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
            let routes = [("EDGE_ROUTES", file.path().to_str().unwrap())];
            let edge = edge(&provider, nowhere, "127.0.0.1", &routes).await;
            (edge.base.strip_prefix("http://").unwrap().parse().unwrap(), file)
        });
        Self {
            runtime,
            address,
            upstream: Mutex::new(upstream),
            open,
            _table: table,
            _provider: provider,
        }
    }

    /// Sends the input on its own connection; panics with what a strict upstream cannot read.
    pub(super) fn check(&self, of: Upstream, input: &[u8]) -> Outcome {
        let results = self
            .upstream
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let input = aimed(of, input);
        let status = self.runtime.block_on(self.send_raw(&input));
        let until = Instant::now() + DEADLINE;
        while self.open.load(Ordering::SeqCst) > 0 {
            assert!(Instant::now() < until, "a connection to an upstream hangs");
            std::thread::yield_now();
        }
        let verdicts: Vec<_> = results.try_iter().collect();
        let whole = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
        let faults: Vec<String> = verdicts.into_iter().filter_map(Result::err).collect();
        assert!(faults.is_empty(), "{}", faults.join("; "));
        if whole > 0 {
            Outcome::PassedOn
        } else {
            Outcome::Refused(status)
        }
    }

    /// The status of the first answer; 0 without one.
    async fn send_raw(&self, input: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The edge may close a rejected request early.
        let _ = stream.write_all(input).await;
        let mut read = Vec::new();
        while let Ok(Ok(1..)) = tokio::time::timeout(SILENCE, stream.read_buf(&mut read)).await {}
        let status = read.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
        status
            .and_then(|code| std::str::from_utf8(code).ok()?.parse().ok())
            .unwrap_or(0)
    }
}

/// The input with the route's own path instead of `/route`.
fn aimed(of: Upstream, input: &[u8]) -> Vec<u8> {
    put(input, "/route", of.route().0)
}

async fn accept(
    listener: TcpListener,
    of: Upstream,
    results: Sender<Result<(), String>>,
    open: Arc<AtomicUsize>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        open.fetch_add(1, Ordering::SeqCst);
        let (results, open) = (results.clone(), Arc::clone(&open));
        tokio::spawn(async move {
            let verdict = AssertUnwindSafe(converse(stream, of)).catch_unwind().await;
            let verdict = match verdict {
                Ok(Ok(())) => Some(Ok(())),
                // Cut off early: no reader can take it for a whole message.
                Ok(Err(HungUp)) => None,
                Err(panic) => Some(Err(panic
                    .downcast::<String>()
                    .map_or_else(|_| "a fault".to_owned(), |text| *text))),
            };
            if let Some(verdict) = verdict {
                let _ = results.send(verdict);
            }
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn converse(stream: TcpStream, of: Upstream) -> Result<(), HungUp> {
    let mut stream = BufReader::new(stream);
    let head = Head::read(&mut stream).await?;
    let (path, _) = of.route();
    assert!(
        head.target.starts_with(path),
        "no request of this route: {}",
        head.target
    );
    if of == Upstream::Guarded {
        assert!(
            head.is_preflight(),
            "through the guard: {} {}",
            head.method,
            head.target
        );
    }
    if of == Upstream::Early {
        let _ = stream.get_mut().write_all(ANSWER).await;
    }
    head.read_body(&mut stream).await?;
    if of != Upstream::Early {
        let _ = stream.get_mut().write_all(ANSWER).await;
    }
    let mut behind = Vec::new();
    let _ = stream.read_to_end(&mut behind).await;
    assert!(behind.is_empty(), "left over: {}", behind.escape_ascii());
    Ok(())
}
