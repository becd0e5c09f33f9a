//! Scripted session services on loopback, and names with scripted addresses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::timeout;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::transport::ServerTlsConfig;
use vestibule_session_api::client::{ClientSettings, Resolve, ResolveFuture, SessionClient};
use vestibule_session_api::v1::session_event::Kind;
use vestibule_session_api::v1::session_service_server::SessionServiceServer;
use vestibule_session_api::v1::*;

use crate::replica::{Answer, Batches, Push, Replica, Seen};

/// On loopback a connection is queued in microseconds.
const QUEUED_WITHIN: Duration = Duration::from_millis(100);

/// A server that runs until it is stopped or dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Seen,
    events: broadcast::Sender<Push>,
    greeting: Arc<Mutex<Vec<SessionEvent>>>,
    slow_reads: watch::Sender<bool>,
    stop: Option<oneshot::Sender<()>>,
    ended: tokio::task::JoinHandle<()>,
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

impl Server {
    pub(crate) async fn start(name: &str, answer: Answer) -> Self {
        Self::start_at(loopback(), name, answer).await
    }

    pub(crate) async fn start_at(address: SocketAddr, name: &str, answer: Answer) -> Self {
        Self::start_with(address, name, answer, None, Batches::Answered).await
    }

    pub(crate) async fn start_with(
        address: SocketAddr,
        name: &str,
        answer: Answer,
        tls: Option<ServerTlsConfig>,
        batches: Batches,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Seen::default();
        let events = broadcast::Sender::new(64);
        // Like the service: a heartbeat at once.
        let greeting = Arc::new(Mutex::new(vec![event(Kind::Heartbeat, "")]));
        let slow_reads = watch::Sender::default();
        let replica = Replica {
            name: name.to_owned(),
            answer,
            seen: seen.clone(),
            events: events.clone(),
            greeting: greeting.clone(),
            batches,
            slow_reads: slow_reads.clone(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        // The smallest limit a server should have (RFC 9113, section 6.5.2).
        let mut server = tonic::transport::Server::builder().max_concurrent_streams(100);
        if let Some(tls) = tls {
            server = server.tls_config(tls).unwrap();
        }
        let closing = events.clone();
        let ended = tokio::spawn(async move {
            server
                .add_service(SessionServiceServer::new(replica))
                .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async move {
                    let _ = stopped.await;
                    let _ = closing.send(Push::Ends);
                })
                .await
                .unwrap();
        });
        Self {
            address,
            seen,
            events,
            greeting,
            slow_reads,
            stop: Some(stop),
            ended,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops like a drain: running calls are answered, watches end.
    pub(crate) async fn stop(mut self) -> SocketAddr {
        drop(self.stop.take());
        within(&mut self.ended).await.unwrap();
        self.address
    }

    pub(crate) fn calls(&self) -> usize {
        *self.seen.calls.borrow()
    }

    /// The number of reads in each batch call.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.seen.batches.lock().unwrap().clone()
    }

    /// The request IDs in each batch call.
    pub(crate) fn request_ids(&self) -> Vec<Vec<String>> {
        self.seen.request_ids.lock().unwrap().clone()
    }

    /// Answers reads of the handle "slow", which wait until then.
    pub(crate) fn answers_slow_reads(&self) {
        self.slow_reads.send_replace(true);
    }

    pub(crate) fn traces(&self) -> Vec<String> {
        self.seen.traces.lock().unwrap().clone()
    }

    /// The first events of every watch opened from now on.
    pub(crate) fn greets_with(&self, events: impl IntoIterator<Item = SessionEvent>) {
        *self.greeting.lock().unwrap() = events.into_iter().collect();
    }

    pub(crate) fn sends(&self, event: SessionEvent) {
        let _ = self.events.send(Push::Event(event));
    }

    pub(crate) fn ends_watches(&self) {
        let _ = self.events.send(Push::Ends);
    }

    pub(crate) fn fails_watches(&self, status: Status) {
        let _ = self.events.send(Push::Fails(status));
    }

    /// Resume tokens of the watches opened, once there are `count`.
    pub(crate) async fn watches(&self, count: usize) -> Vec<String> {
        let mut watches = self.seen.watches.subscribe();
        within(watches.wait_for(|watches| watches.len() >= count))
            .await
            .unwrap()
            .clone()
    }

    /// Waits until no watch is open.
    pub(crate) async fn unwatched(&self) {
        while self.events.receiver_count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// An event with a token to resume after it.
pub(crate) fn event(kind: Kind, resume_token: &str) -> SessionEvent {
    SessionEvent {
        kind: kind.into(),
        handle: if kind == Kind::Ended {
            "h".repeat(32)
        } else {
            String::new()
        },
        resume_token: resume_token.to_owned(),
        ..Default::default()
    }
}

/// A name with scripted addresses.
#[derive(Clone, Default)]
pub(crate) struct Name {
    leads: Arc<Mutex<Leads>>,
    lookups: watch::Sender<usize>,
}

#[derive(Clone, Default)]
enum Leads {
    #[default]
    Nowhere,
    To(Vec<SocketAddr>),
    /// The name server answers with an error.
    Unknown,
    /// The name server does not answer.
    Silence,
}

impl Name {
    pub(crate) fn leads_to(&self, servers: &[SocketAddr]) {
        *self.leads.lock().unwrap() = Leads::To(servers.to_vec());
    }

    pub(crate) fn is_unknown(&self) {
        *self.leads.lock().unwrap() = Leads::Unknown;
    }

    /// Waits until the name was resolved again and the result applied.
    pub(crate) async fn asked_again(&self) {
        let mut lookups = self.lookups.subscribe();
        let before = *lookups.borrow();
        within(lookups.wait_for(|lookups| *lookups > before + 1))
            .await
            .unwrap();
    }

    pub(crate) fn is_not_answered(&self) {
        *self.leads.lock().unwrap() = Leads::Silence;
    }
}

impl Resolve for Name {
    fn resolve<'a>(&'a self, _host: &'a str, _port: u16) -> ResolveFuture<'a> {
        let leads = self.leads.lock().unwrap().clone();
        self.lookups.send_modify(|lookups| *lookups += 1);
        Box::pin(async move {
            match leads {
                Leads::Nowhere => Ok(Vec::new()),
                Leads::To(addresses) => Ok(addresses),
                Leads::Unknown => Err(std::io::ErrorKind::NotFound.into()),
                Leads::Silence => std::future::pending().await,
            }
        })
    }
}

/// Accepts connections and never answers, like a stopped process.
pub(crate) struct Hanging {
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Hanging {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                held.push(connection);
            }
        });
        Self { address, task }
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An address that neither accepts nor refuses a connection, like that of a pod that is gone.
pub(crate) struct Silent {
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Silent {
    pub(crate) async fn at(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        // It accepts no connection: once the queue is full, the kernel drops new handshakes.
        let listener = socket.listen(1).unwrap();
        let mut queued = Vec::new();
        while let Ok(connected) = timeout(QUEUED_WITHIN, TcpStream::connect(address)).await {
            queued.push(connected.unwrap());
        }
        Self {
            _listener: listener,
            _queued: queued,
        }
    }
}

/// Settings for a service found by `name`, which is resolved many times a second.
pub(crate) fn found_by(name: &Name) -> ClientSettings {
    ClientSettings {
        resolver: Arc::new(name.clone()),
        resolve_interval: Duration::from_millis(10),
        watch_silence: Duration::from_secs(60),
        ..ClientSettings::new(["http://session-svc:50051"])
    }
}

pub(crate) fn client(addresses: impl IntoIterator<Item = String>, deadline: Duration) -> SessionClient {
    SessionClient::new(ClientSettings {
        deadline,
        watch_silence: Duration::from_secs(60),
        ..ClientSettings::new(addresses)
    })
    .unwrap()
}

pub(crate) fn by_handle() -> GetSessionRequest {
    GetSessionRequest {
        by: Some(get_session_request::By::Handle("h".into())),
    }
}

/// Nothing in these tests takes this long.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.unwrap()
}
