//! `SessionClient::watch` against the real program: killed, restarted, cut off, or one of two replicas gone.
//! The client reports each ending, or that events may be missing.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use session_proto::client::{ClientSettings, SessionClient, WatchItem};
use session_proto::v1::session_event::Kind;
use session_proto::v1::{
    CreateSessionRequest, CreateSessionResponse, EndSessionRequest, WatchSessionsRequest, end_session_request,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_stream::{Stream, StreamExt as _};

use crate::redis_server::{RedisServer, free_port};

const KEY: &str = "abababababababababababababababababababababababababababababababab";

/// A running session service, killed when dropped.
struct Program {
    child: Child,
    address: SocketAddr,
}

impl Program {
    fn start(store: &str) -> Self {
        Self::start_at(store, SocketAddr::from(([127, 0, 0, 1], free_port())))
    }

    fn start_at(store: &str, address: SocketAddr) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_session-svc"))
            .env_clear()
            .env("SESSION_LISTEN", address.to_string())
            .env("SESSION_ADMIN_LISTEN", "off")
            .env("SESSION_STORE", store)
            .env("SESSION_ENCRYPTION_KEY", KEY)
            .env("OIDC_ISSUER_URL", "https://issuer.example")
            .env("OIDC_CLIENT_ID", "vestibule")
            .env("OIDC_CLIENT_SECRET", "not asked for here")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address }
    }

    /// Kills the process with SIGKILL.
    fn kill(mut self) -> SocketAddr {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.address
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(addresses: &[SocketAddr]) -> SessionClient {
    SessionClient::new(ClientSettings::new(
        addresses.iter().map(|address| format!("http://{address}")),
    ))
    .unwrap()
}

async fn begin(client: &SessionClient) -> CreateSessionResponse {
    let user = json!({ "sub": "ada" });
    let request = CreateSessionRequest {
        issuer: "https://issuer.example".to_owned(),
        user: user.to_string(),
        ..Default::default()
    };
    within(async {
        loop {
            if let Ok(created) = client.create_session(request.clone()).await {
                return created;
            }
        }
    })
    .await
}

async fn end(client: &SessionClient, created: &CreateSessionResponse) {
    let request = EndSessionRequest {
        by: Some(end_session_request::By::SessionId(created.session_id.clone())),
        ..Default::default()
    };
    within(async { while client.end_session(request.clone()).await.is_err() {} }).await;
}

/// The items until the watch is live (again), without its progress reports.
async fn until_live(watch: &mut (impl Stream<Item = WatchItem> + Unpin)) -> Vec<WatchItem> {
    let mut reported = Vec::new();
    loop {
        match within(watch.next()).await.unwrap() {
            WatchItem::Connected => return reported,
            WatchItem::Event(event) if event.kind() == Kind::Heartbeat => {}
            WatchItem::Current(_) => {}
            item => reported.push(item),
        }
    }
}

/// The items until `enough` returns true.
async fn until(
    watch: &mut (impl Stream<Item = WatchItem> + Unpin),
    enough: impl Fn(&[WatchItem]) -> bool,
) -> Vec<WatchItem> {
    let mut reported = Vec::new();
    while !enough(&reported) {
        reported.push(within(watch.next()).await.unwrap());
    }
    reported
}

fn tells_ending_of(reported: &[WatchItem], created: &CreateSessionResponse) -> bool {
    let handle = &created.session.as_ref().unwrap().handle;
    reported.iter().any(
        |item| matches!(item, WatchItem::Event(event) if event.kind() == Kind::Ended && event.handle == *handle),
    )
}

/// Nothing in these tests takes this long.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap()
}

fn file_store(directory: &Path) -> String {
    format!("file:{}", directory.join("sessions.redb").display())
}

#[tokio::test]
async fn an_ending_while_the_watcher_is_cut_off_is_told_when_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::start(&file_store(directory.path()));
    let direct = client(&[program.address]);
    let created = begin(&direct).await;
    let cable = Cable::lay(program.address).await;
    let mut watch = client(&[cable.address]).watch(WatchSessionsRequest::default());
    until_live(&mut watch).await;
    let cable = cable.cut().await;
    end(&direct, &created).await;
    let _cable = Cable::lay_at(cable, program.address).await;
    let reported = until_live(&mut watch).await;
    assert!(
        matches!(reported.first(), Some(WatchItem::Lost(_))),
        "{reported:?}"
    );
    assert!(tells_ending_of(&reported, &created), "{reported:?}");
    assert!(!reported.contains(&WatchItem::Missed), "{reported:?}");
}

#[tokio::test]
async fn an_ending_is_told_after_the_service_was_killed_and_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = file_store(directory.path());
    let program = Program::start(&store);
    let client = client(&[program.address]);
    let created = begin(&client).await;
    let mut watch = client.watch(WatchSessionsRequest::default());
    until_live(&mut watch).await;
    let _program = Program::start_at(&store, program.kill());
    // The same watch resumes where it was, so nothing is missing.
    let reported = until_live(&mut watch).await;
    assert!(
        matches!(reported.as_slice(), [WatchItem::Lost(_)]),
        "{reported:?}"
    );
    end(&client, &created).await;
    let reported = until(&mut watch, |reported| tells_ending_of(reported, &created)).await;
    assert!(!reported.contains(&WatchItem::Missed), "{reported:?}");
}

#[tokio::test]
async fn a_store_that_forgot_everything_is_told_as_missed() {
    let program = Program::start("memory:");
    let client = client(&[program.address]);
    begin(&client).await;
    let mut watch = client.watch(WatchSessionsRequest::default());
    until_live(&mut watch).await;
    let address = program.kill();
    let _program = Program::start_at("memory:", address);
    let reported = until_live(&mut watch).await;
    assert!(
        matches!(reported.first(), Some(WatchItem::Lost(_))),
        "{reported:?}"
    );
    assert!(reported.contains(&WatchItem::Missed), "{reported:?}");
}

#[tokio::test]
async fn when_one_of_two_replicas_is_killed_the_other_tells_what_happened_meanwhile() {
    let redis = RedisServer::start(&[]);
    let store = format!("redis://127.0.0.1:{}", redis.port);
    let one = Program::start(&store);
    let later = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let created = begin(&client(&[one.address])).await;
    // On the first replica for certain: the second is started afterwards.
    let mut watch = client(&[one.address, later]).watch(WatchSessionsRequest::default());
    until_live(&mut watch).await;
    let two = Program::start_at(&store, later);
    let survivor = client(&[two.address]);
    begin(&survivor).await;
    let killed = one.kill();
    end(&survivor, &created).await;
    let other = begin(&survivor).await;
    end(&survivor, &other).await;
    let reported = until(&mut watch, |reported| tells_ending_of(reported, &other)).await;
    assert!(tells_ending_of(&reported, &created), "{reported:?}");
    assert!(!reported.contains(&WatchItem::Missed), "{reported:?}");
    let mut each = client(&[two.address, killed]).watch_each(WatchSessionsRequest::default());
    let (mut live, mut lost) = (false, false);
    while !(live && lost) {
        let (id, item) = within(each.next()).await.unwrap();
        live |= id.address() == two.address && item == WatchItem::Connected;
        lost |= id.address() == killed && matches!(item, WatchItem::Lost(_));
    }
}

/// A connection to a server that the test can cut.
struct Cable {
    address: SocketAddr,
    carrier: tokio::task::JoinHandle<()>,
}

impl Cable {
    async fn lay(to: SocketAddr) -> Self {
        Self::lay_at(SocketAddr::from(([127, 0, 0, 1], 0)), to).await
    }

    async fn lay_at(address: SocketAddr, to: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let carrier = tokio::spawn(carry(listener, to));
        Self { address, carrier }
    }

    /// Ends every connection; the address accepts none afterwards.
    async fn cut(self) -> SocketAddr {
        self.carrier.abort();
        let _ = self.carrier.await;
        self.address
    }
}

/// Carries connections until dropped, which also ends them.
async fn carry(listener: TcpListener, to: SocketAddr) {
    let mut carried = JoinSet::new();
    while let Ok((mut near, _)) = listener.accept().await {
        carried.spawn(async move {
            if let Ok(mut far) = TcpStream::connect(to).await {
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
}
