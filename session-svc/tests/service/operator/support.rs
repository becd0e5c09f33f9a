//! A running service, its stored sessions, and the tool.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use session_proto::client::{ClientSettings, SessionClient, SessionError};
use session_proto::v1::{CreateSessionRequest, Device, ListSessionsRequest, Session, TokenSet};

use crate::redis_server::free_port;

/// Longest a service may take to answer or to stop.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(crate) const ISSUER: &str = "http://127.0.0.1:9";
pub(crate) const OLD_KEY: &str = "0000000000000000000000000000000000000000000000000000000000000001";
pub(crate) const NEW_KEY: &str = "0000000000000000000000000000000000000000000000000000000000000002";

/// Texts that no answer may contain.
pub(crate) const TOKENS: [&str; 3] = ["access-token-0815", "refresh-token-0815", "id-token-0815"];

/// The program without this machine's environment.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_session-svc"));
    command.env_clear().stdin(Stdio::null());
    command
}

/// One finding of a report.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) result: String,
    pub(crate) value: String,
    pub(crate) advice: String,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct ToolOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl ToolOutput {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let reported = Self {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        };
        for token in TOKENS.iter().chain([&OLD_KEY, &NEW_KEY]) {
            assert!(
                !reported.out.contains(token) && !reported.err.contains(token),
                "{token} is shown"
            );
        }
        reported
    }

    /// The report's finding with this ID.
    pub(crate) fn finding(&self, id: &str) -> Found {
        let mut lines = self.out.lines();
        let is_it = |line: &&str| line.split_whitespace().nth(1) == Some(id);
        let line = lines.find(is_it);
        let line = line
            .unwrap_or_else(|| panic!("{id} is missing in {self:?}"))
            .trim_start();
        let (result, rest) = line.split_once(' ').unwrap();
        let advice = lines.next().and_then(|line| line.trim_start().strip_prefix("→ "));
        Found {
            result: result.to_owned(),
            value: rest
                .trim_start()
                .strip_prefix(id)
                .unwrap()
                .trim_start()
                .to_owned(),
            advice: advice.unwrap_or_default().to_owned(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A running service; killed when dropped.
pub(crate) struct Service {
    child: Child,
    log: tempfile::NamedTempFile,
    pub(crate) url: String,
    pub(crate) client: SessionClient,
}

impl Service {
    /// Starts a service on a store, with a key ring.
    pub(crate) async fn start(store: &str, keys: &str) -> Self {
        Self::start_with(store, keys, &[], &ClientSettings::new(["http://unused"])).await
    }

    /// Starts a service with further settings; `settings` adds them, except for its addresses.
    pub(crate) async fn start_with(
        store: &str,
        keys: &str,
        more: &[(&str, &str)],
        settings: &ClientSettings,
    ) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{address}");
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = program()
            .envs([
                ("SESSION_LISTEN", address.as_str()),
                ("SESSION_ADMIN_LISTEN", "off"),
                ("SESSION_STORE", store),
                ("SESSION_ENCRYPTION_KEY", keys),
                ("OIDC_ISSUER_URL", ISSUER),
                ("OIDC_CLIENT_ID", "client"),
                ("OIDC_CLIENT_SECRET", "a secret of the client"),
            ])
            .envs(more.iter().copied())
            .stdout(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let settings = ClientSettings {
            addresses: vec![url.clone()],
            ..settings.clone()
        };
        let client = SessionClient::new(settings).unwrap();
        let service = Self {
            child,
            log,
            url,
            client,
        };
        let began = Instant::now();
        while let Err(error) = service.client.list_sessions(of_nobody()).await {
            assert!(began.elapsed() < WAIT_MAX, "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        service
    }

    /// The service's log.
    pub(crate) fn told(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Sends the process a signal, such as `STOP`, which freezes it, and `CONT`.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Stops all its threads where they are, and waits until they have stopped.
    pub(crate) async fn stand_still(&self) {
        self.signal("STOP");
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap();
            stat.rsplit(") ").next().unwrap().starts_with('T')
        };
        let tasks = format!("/proc/{}/task", self.child.id());
        while !std::fs::read_dir(&tasks)
            .unwrap()
            .all(|task| is_stopped(task.unwrap()))
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stops the service as an operator would, and waits.
    pub(crate) async fn stop(mut self) {
        self.signal("TERM");
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < WAIT_MAX, "the service does not stop");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Calls the tool on this service.
    pub(crate) fn tool(&self, arguments: &[&str]) -> ToolOutput {
        let mut command = program();
        command.env("OIDC_ISSUER_URL", ISSUER).args(arguments);
        ToolOutput::of(command.args(["--service", &self.url]).output().unwrap())
    }

    /// Creates a session. Returns its secret and its handle.
    pub(crate) async fn create(&self, subject: &str, sid: &str, request_id: &str) -> (String, String) {
        let created = self
            .client
            .create_session(new_session(subject, sid, request_id))
            .await;
        let created = created.unwrap();
        (created.session_id, created.session.unwrap().handle)
    }

    /// A person's listed sessions, by handle.
    pub(crate) async fn listed(&self, subject: &str) -> BTreeMap<String, Session> {
        self.try_listed(subject).await.unwrap()
    }

    /// The same, if the store may be away.
    pub(crate) async fn try_listed(&self, subject: &str) -> Result<BTreeMap<String, Session>, SessionError> {
        let request = ListSessionsRequest {
            subject: subject.to_owned(),
            page_size: 200,
            ..of_nobody()
        };
        let page = self.client.list_sessions(request).await?;
        let sessions = page.sessions.into_iter();
        Ok(sessions
            .map(|session| (session.handle.clone(), session))
            .collect())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn of_nobody() -> ListSessionsRequest {
    ListSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: "nobody".to_owned(),
        page_size: 1,
        page_token: String::new(),
    }
}

pub(crate) fn new_session(subject: &str, sid: &str, request_id: &str) -> CreateSessionRequest {
    let [access_token, refresh_token, id_token] = TOKENS.map(str::to_owned);
    let user = serde_json::json!({ "sub": subject, "name": "Ada Lovelace" });
    CreateSessionRequest {
        issuer: ISSUER.to_owned(),
        user: user.to_string(),
        tokens: Some(TokenSet {
            access_token,
            refresh_token,
            id_token,
            scope: "openid email".to_owned(),
            ..TokenSet::default()
        }),
        provider_sid: sid.to_owned(),
        device: Some(Device {
            user_agent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0".to_owned(),
            address: "203.0.113.7".to_owned(),
            at: None,
        }),
        request_id: request_id.to_owned(),
        ..CreateSessionRequest::default()
    }
}

/// Calls a command that works on the store itself.
pub(crate) fn on_store(store: &str, keys: &str, arguments: &[&str]) -> ToolOutput {
    let mut command = program();
    command.args(["--store", store]).args(arguments);
    ToolOutput::of(command.env("SESSION_ENCRYPTION_KEY", keys).output().unwrap())
}

/// The end of a question.
const QUESTION_ENDS: &str = "[y/N]";

/// Calls a command on a terminal and types `typed` as the answer to its question.
pub(crate) fn on_terminal(arguments: &[&str], typed: &str) -> (i32, String) {
    let mut line = env!("CARGO_BIN_EXE_session-svc").to_owned();
    for argument in arguments {
        line.push_str(&format!(" '{argument}'"));
    }
    let child = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("OIDC_ISSUER_URL", ISSUER)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.unwrap_or_else(|error| {
        panic!("script cannot be started ({error}): install it with `apt-get install bsdutils`")
    });
    // The terminal shows what is typed: before the end of the question, it would be in the middle of it.
    let mut shown = String::new();
    let mut screen = BufReader::new(child.stdout.take().unwrap());
    let mut byte = [0];
    while !shown.ends_with(QUESTION_ENDS) && screen.read(&mut byte).unwrap() > 0 {
        shown.push(char::from(byte[0]));
    }
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    screen.read_to_string(&mut shown).unwrap();
    (child.wait().unwrap().code().unwrap(), shown)
}

/// The address of a file store.
pub(crate) fn file_in(directory: &Path) -> String {
    format!("file:{}", directory.join("sessions").display())
}
