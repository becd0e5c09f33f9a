//! An edge as a child process, and servers for it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use chassis::runtime::Workers;
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cgroup::Group;

/// Only a failing test waits this long: twice the edge's wait for a client that reads nothing.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// An edge under the memory limit of its pod, which ends when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    _table: NamedTempFile,
    _limit: Group,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free address: bound and released.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

impl Process {
    /// Starts an edge before `upstream` with these settings, and waits until it answers.
    pub(crate) async fn start(upstream: SocketAddr, settings: &[(&str, &str)]) -> Self {
        let mut table = NamedTempFile::new().unwrap();
        writeln!(
            table,
            "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"http://{upstream}\""
        )
        .unwrap();
        let (address, admin) = (free(), free());
        let child = Command::new(env!("CARGO_BIN_EXE_auth-edge"))
            .env_clear()
            .envs([
                ("EDGE_LISTEN", address.to_string()),
                ("EDGE_ADMIN_LISTEN", admin.to_string()),
                ("EDGE_BASE_URL", format!("http://{address}")),
                ("EDGE_SECRET", "a secret for tests that is long enough".to_owned()),
                ("EDGE_SESSION_SVC_URL", "http://127.0.0.1:1".to_owned()),
                ("EDGE_ROUTES", table.path().to_str().unwrap().to_owned()),
                ("OIDC_ISSUER_URL", "http://127.0.0.1:1".to_owned()),
                ("OIDC_CLIENT_ID", "client".to_owned()),
                ("OIDC_CLIENT_SECRET", "a secret of the client".to_owned()),
                ("RUST_LOG", "warn".to_owned()),
            ])
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let limit = Group::of_pod(child.id());
        let started = Self {
            child,
            address,
            admin,
            _table: table,
            _limit: limit,
        };
        let deadline = Instant::now() + LONGEST_WAIT;
        while TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < deadline, "the edge listens");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        started
    }

    /// Resident memory in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Its exit code, once it has ended.
    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it ends");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A server in this process, which ends with the guard.
pub(crate) async fn serve(router: Router) -> (SocketAddr, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(chassis::serve::serve_each(
        Workers::here(),
        listener,
        move || router.clone(),
        None,
        chassis::serve::Limits::default(),
        chassis::serve::Stopping::on(stop.clone()),
    ));
    (address, stop.drop_guard())
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LONGEST_WAIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
