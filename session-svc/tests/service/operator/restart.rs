//! The shipped Redis users: a restart loses none of their sessions, and their rights are enough.

use std::time::{Duration, Instant};

use super::support::{NEW_KEY, Service, ToolOutput, on_store};
use crate::redis_server::RedisServer;

/// The users the manifests give Redis; `PASSWORDS` stands for their passwords.
const SHIPPED_USERS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../k8s/components/redis/settings/users.acl"
);

const PASSWORD: &str = "a-password";
const SESSIONS: usize = 5;
const WAIT_MAX: Duration = Duration::from_secs(20);

struct Store {
    server: RedisServer,
    _users: tempfile::NamedTempFile,
}

impl Store {
    /// A server with an append-only file and these users.
    fn with(users: &str) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        // An ACL file has no comments.
        let users = users.lines().filter(|line| line.starts_with("user "));
        let users: String = users.map(|line| format!("{line}\n")).collect();
        let users = users.replace("PASSWORDS", &format!(">{PASSWORD}"));
        std::fs::write(file.path(), users).unwrap();
        let path = file.path().to_str().unwrap();
        let server = RedisServer::start(&["--appendonly", "yes", "--aclfile", path]);
        Self { server, _users: file }
    }

    fn url(&self, user: &str) -> String {
        format!("redis://{user}:{PASSWORD}@127.0.0.1:{}", self.server.port)
    }

    fn administer(&self, command: &str) -> String {
        self.server
            .ask(&format!("AUTH administrator {PASSWORD}\r\n{command}"))
    }

    async fn with_sessions(&self) -> Service {
        let service = Service::start(&self.url("session-svc"), NEW_KEY).await;
        for _ in 0..SESSIONS {
            service.create("ada", "sid", "").await;
        }
        service
    }

    /// How many sessions remain after the server was killed and has reloaded its file.
    async fn kept_over_a_restart(&mut self, service: &Service) -> usize {
        self.server.start_again();
        let began = Instant::now();
        loop {
            // Calls fail until the service has reconnected.
            match service.try_listed("ada").await {
                Ok(listed) => return listed.len(),
                Err(error) => assert!(began.elapsed() < WAIT_MAX, "{error}"),
            }
        }
    }

    fn report(&self, user: &str) -> ToolOutput {
        on_store(&self.url(user), NEW_KEY, &["check-store"])
    }
}

fn shipped() -> String {
    std::fs::read_to_string(SHIPPED_USERS).unwrap()
}

#[tokio::test]
async fn the_users_that_are_shipped_lose_no_session_and_check_store_agrees() {
    let mut store = Store::with(&shipped());
    let service = store.with_sessions().await;
    let report = store.report("administrator");
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(report.finding("persistence").result, "ok", "{report:?}");
    assert_eq!(store.kept_over_a_restart(&service).await, SESSIONS);

    // A restart after a rewrite of the file loses no write either.
    store.administer("BGREWRITEAOF");
    service.create("ada", "sid", "").await;
    assert_eq!(store.kept_over_a_restart(&service).await, SESSIONS + 1);
}

#[tokio::test]
async fn a_right_that_is_missing_is_named_and_nothing_is_taken_for_granted() {
    let store = Store::with(&shipped());
    store.administer("ACL SETUSER session-svc -info");
    let report = store.report("session-svc");
    assert_eq!(report.code, 0, "{report:?}");
    let engine = report.finding("engine");
    assert_eq!(engine.result, "unknown");
    assert!(engine.advice.contains("+info"), "{engine:?}");
}

#[tokio::test]
async fn with_the_rights_that_are_shipped_nothing_the_service_does_is_refused() {
    let store = Store::with(&shipped());
    let service = store.with_sessions().await;
    let listed = service.listed("ada").await;
    assert_eq!(listed.len(), SESSIONS);
    let handle = listed.keys().next().unwrap();
    let ended = service.tool(&["sessions", "end", "--handle", handle]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(service.listed("ada").await.len(), SESSIONS - 1);

    // After the answer to AUTH, the log of denied commands is empty.
    assert_eq!(store.administer("ACL LOG"), "+OK\r\n*0\r\n");
}
