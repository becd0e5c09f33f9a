//! What a restart of Redis does to sessions, and what `check-store`, `doctor` and the start say of it before.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::support::{NEW_KEY, Service, ToolOutput, on_store, program};
use crate::redis_server::{RedisServer, free_port};

/// The users the manifests give Redis; `PASSWORDS` stands for theirs.
const SHIPPED_USERS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../k8s/components/redis/settings/users.acl"
);

/// What many manuals say, and what ours once said.
const BARE_USERS: &str = "user default off\n\
    user session-svc on PASSWORDS ~vestibule:* -@all +@all -@admin -@dangerous +role +info\n\
    user administrator on PASSWORDS ~* &* +@all\n";

const PASSWORD: &str = "a-password";
const SESSIONS: usize = 5;
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Releases from this on load what the default user may not do (redis pull request 14545).
const REPAIRED_FROM: (u64, u64) = (8, 6);

struct Store {
    server: RedisServer,
    _users: tempfile::NamedTempFile,
}

impl Store {
    /// A server that appends, with these users.
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

    fn version(&self) -> (u64, u64) {
        let info = self.administer("INFO server");
        let version = info.split("redis_version:").nth(1).unwrap();
        let mut numbers = version.split(['.', '\r']).map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    async fn with_sessions(&self) -> Service {
        let service = Service::start(&self.url("session-svc"), NEW_KEY).await;
        for _ in 0..SESSIONS {
            service.create("ada", "sid", "").await;
        }
        service
    }

    /// How many sessions are there after the server was killed and has read its file.
    async fn kept_over_a_restart(&mut self, service: &Service) -> usize {
        self.server.start_again();
        let began = Instant::now();
        loop {
            // Until it has connected again, its calls fail.
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
async fn a_default_user_without_rights_loses_sessions_and_check_store_says_so_before() {
    let mut store = Store::with(BARE_USERS);
    let service = store.with_sessions().await;
    let is_repaired = store.version() >= REPAIRED_FROM;
    let report = store.report("administrator");
    let found = report.finding("default_user");
    let expected = if is_repaired {
        (0, "warning")
    } else {
        (1, "problem")
    };
    assert_eq!((report.code, found.result.as_str()), expected, "{report:?}");
    assert!(found.value.contains("set"), "{found:?}");
    assert!(found.advice.contains("user default off ~* &* +@all"), "{found:?}");

    let expected = if is_repaired { SESSIONS } else { 0 };
    assert_eq!(store.kept_over_a_restart(&service).await, expected);
}

#[tokio::test]
async fn the_users_that_are_shipped_lose_no_session_and_check_store_agrees() {
    let mut store = Store::with(&shipped());
    let service = store.with_sessions().await;
    let report = store.report("administrator");
    assert_eq!(report.code, 0, "{report:?}");
    for name in [
        "default_user",
        "persistence",
        "appendfsync",
        "append_status",
        "rewrite_status",
    ] {
        assert_eq!(report.finding(name).result, "ok", "{name}: {report:?}");
    }
    assert_eq!(store.kept_over_a_restart(&service).await, SESSIONS);

    // And what is written behind a rewrite.
    store.administer("BGREWRITEAOF");
    service.create("ada", "sid", "").await;
    assert_eq!(store.kept_over_a_restart(&service).await, SESSIONS + 1);
}

#[tokio::test]
async fn rights_that_are_missing_are_named_and_nothing_is_taken_for_granted() {
    let store = Store::with(&shipped());
    store.administer("ACL SETUSER session-svc -info -acl|dryrun");
    let report = store.report("session-svc");
    assert_eq!(report.code, 0, "{report:?}");
    let engine = report.finding("engine");
    assert_eq!(engine.result, "unknown");
    for right in ["+info", "+config|get", "+acl|dryrun"] {
        assert!(engine.advice.contains(right), "{engine:?}");
    }

    store.administer("ACL SETUSER session-svc +info");
    let report = store.report("session-svc");
    assert_eq!(report.code, 0, "{report:?}");
    for (name, right) in [("default_user", "+acl|dryrun"), ("appendfsync", "+config|get")] {
        let found = report.finding(name);
        assert_eq!(
            (found.result.as_str(), found.value.as_str()),
            ("unknown", "unknown")
        );
        assert!(found.advice.contains(right), "{found:?}");
    }

    // The one right that the start needs besides.
    store.administer("ACL SETUSER session-svc +acl|dryrun");
    assert_eq!(store.report("session-svc").finding("default_user").result, "ok");
}

#[tokio::test]
async fn the_memory_of_a_container_is_judged_when_it_is_told() {
    let store = Store::with(&shipped());
    store.administer("CONFIG SET maxmemory 192mb");
    let judged = |memory: &str| {
        let url = store.url("administrator");
        let reported = on_store(&url, NEW_KEY, &["check-store", "--server-memory", memory]);
        reported.finding("memory_to_rewrite").result
    };
    assert_eq!(judged("256Mi"), "warning");
    assert_eq!(judged("402653184"), "ok");
}

#[tokio::test]
async fn with_the_rights_that_are_shipped_the_start_warns_and_nothing_the_service_does_is_refused() {
    let users = shipped();
    let bare = users.replace("user default off ~* &* +@all", "user default off");
    assert_ne!(bare, users);
    let store = Store::with(&bare);
    let service = store.with_sessions().await;
    service
        .wait_until_told(&["a restart of the store would lose sessions", "default_user"])
        .await;
    let listed = service.listed("ada").await;
    assert_eq!(listed.len(), SESSIONS);
    let handle = listed.keys().next().unwrap();
    let ended = service.tool(&["sessions", "end", "--handle", handle]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(service.listed("ada").await.len(), SESSIONS - 1);

    // Nothing, behind the answer to AUTH.
    assert_eq!(store.administer("ACL LOG"), "+OK\r\n*0\r\n");
}

#[tokio::test]
async fn the_doctor_and_the_start_say_so_too() {
    let store = Store::with(BARE_USERS);
    let listen = format!("127.0.0.1:{}", free_port());
    let service = |command: &[&str]| {
        let mut program = program();
        program.args(command).envs([
            ("SESSION_STORE", store.url("administrator").as_str()),
            ("SESSION_ENCRYPTION_KEY", NEW_KEY),
            ("SESSION_LISTEN", listen.as_str()),
            ("SESSION_ADMIN_LISTEN", "off"),
            ("OIDC_ISSUER_URL", "http://127.0.0.1:9"),
            ("OIDC_CLIENT_ID", "client"),
            ("OIDC_CLIENT_SECRET", "a secret of the client"),
        ]);
        program
    };
    let output = service(&["doctor"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let is_found = |line: &str| line.split_whitespace().take(2).eq(["problem", "default_user"]);
    assert!(text.lines().any(is_found), "{text}");

    let mut running = service(&[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let warned = lines.find(|line| {
        let line = line.as_ref().unwrap();
        line.contains("a restart of the store would lose sessions") && line.contains("default_user")
    });
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(warned.is_some());
}
