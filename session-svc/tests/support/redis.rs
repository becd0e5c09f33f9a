//! Real Redis and Valkey servers for tests: each on its own free loopback port and in its own directory,
//! killed when dropped.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::fmt::Display;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest a server may take to answer after it was started.
const START: Duration = Duration::from_secs(20);

/// Attempts to start on a free port: another process may take it first.
const ATTEMPTS: usize = 5;

/// Below the range for outgoing connections, so that no outgoing connection takes a port between its choice
/// and its use.
const PORT_MIN: u16 = 12_000;
const PORT_MAX: u16 = 32_000;

/// The server program.
#[derive(Clone, Copy)]
pub(crate) enum Engine {
    Redis,
    Valkey,
}

impl Engine {
    fn program(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }
}

/// A running server.
pub(crate) struct RedisServer {
    engine: Engine,
    child: Option<Child>,
    directory: TempDir,
    /// Its port on 127.0.0.1 (TLS if it was started with `--tls-port PORT`).
    pub(crate) port: u16,
    /// A second port, for TLS, if its arguments name `TLSPORT`.
    pub(crate) tls_port: u16,
    arguments: Vec<String>,
    /// Configuration file's content; Sentinels need one.
    configuration: Option<String>,
}

/// A port that is free at this moment.
pub(crate) fn free_port() -> u16 {
    loop {
        let drawn = RandomState::new().build_hasher().finish() % u64::from(PORT_MAX - PORT_MIN);
        let port = PORT_MIN + u16::try_from(drawn).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl RedisServer {
    /// Starts a server without persistence. `PORT` in the arguments becomes its port, `TLSPORT` another.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_on(Engine::Redis, arguments)
    }

    /// The same, for this program.
    pub(crate) fn start_on(engine: Engine, arguments: &[&str]) -> Self {
        Self::start_with(engine, arguments, None)
    }

    /// Starts a Sentinel with this configuration and further arguments.
    pub(crate) fn start_sentinel(engine: Engine, configuration: &str, arguments: &[&str]) -> Self {
        let arguments = [&["--sentinel"], arguments].concat();
        Self::start_with(engine, &arguments, Some(configuration.to_owned()))
    }

    fn start_with(engine: Engine, arguments: &[&str], configuration: Option<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut server = Self {
            engine,
            child: None,
            directory,
            port: 0,
            tls_port: 0,
            arguments,
            configuration,
        };
        for _ in 0..ATTEMPTS {
            (server.port, server.tls_port) = (free_port(), free_port());
            server.launch();
            if server.answers() {
                return server;
            }
            server.kill();
        }
        panic!("{} does not start: {}", engine.program(), server.log());
    }

    fn launch(&mut self) {
        let port = self.port.to_string();
        let program = self.engine.program();
        let mut command = Command::new(program);
        if let Some(configuration) = &self.configuration {
            std::fs::write(self.file("conf"), configuration).unwrap();
            command.arg(self.file("conf")).args(["--bind", "127.0.0.1"]);
        } else {
            command.arg("-");
            command.args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--daemonize",
                "no",
            ]);
        }
        if !self.arguments.iter().any(|argument| argument == "--port") {
            command.args(["--port", &port]);
        }
        let tls_port = self.tls_port.to_string();
        let ports = |argument: &String| argument.replace("TLSPORT", &tls_port).replace("PORT", &port);
        command.args(self.arguments.iter().map(ports));
        command.arg("--dir").arg(self.directory.path());
        let log = std::fs::File::create(self.directory.path().join("log")).unwrap();
        command
            .stdin(Stdio::null())
            .stderr(log.try_clone().unwrap())
            .stdout(log);
        let started = command.spawn();
        self.child = Some(started.unwrap_or_else(|error| {
            panic!("{program} cannot be started ({error}): install it with `apt-get install {program}`")
        }));
    }

    fn answers(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < START {
            let exited = self
                .child
                .as_mut()
                .is_none_or(|child| child.try_wait().unwrap().is_some());
            if exited {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// The server's log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Changes the arguments for the next start.
    pub(crate) fn set_arguments(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again on the same port, empty.
    pub(crate) fn start_again(&mut self) {
        self.kill();
        self.launch();
        assert!(self.answers(), "the server does not start again: {}", self.log());
    }

    /// Stops (`STOP`) or continues (`CONT`) the process, as a frozen machine would.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(
            Command::new("kill")
                .arg(format!("-{signal}"))
                .arg(id)
                .status()
                .unwrap()
                .success()
        );
    }

    /// Sends an inline command without TLS and gives the raw answer.
    pub(crate) fn ask(&self, command: &str) -> String {
        ask(self.port, command)
    }

    /// Waits until the replicas have everything this master has now.
    pub(crate) fn wait_until_copied(&self) {
        let started = Instant::now();
        let written = number(&self.ask("INFO replication"), "master_repl_offset:").unwrap();
        // A new replica stands at 0 and acknowledges nothing for up to a second.
        let written = written.max(1);
        loop {
            self.ask("PUBLISH copied now");
            let facts = self.ask("INFO replication");
            let replicas: Vec<&str> = facts
                .lines()
                .filter(|line| line.contains("state=online"))
                .collect();
            let copied = |replica: &&str| number(replica, "offset=").is_some_and(|offset| offset >= written);
            if !replicas.is_empty() && replicas.iter().all(copied) {
                return;
            }
            assert!(started.elapsed() < START, "the replica does not follow: {facts}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A file in the server's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        Path::new(self.directory.path()).join(name)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The number after a name in the server's INFO text.
fn number(facts: &str, name: &str) -> Option<u64> {
    let digits = facts.split_once(name)?.1;
    let end = digits.find(|character: char| !character.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// Records every command clients send to a server, without those of scripts.
pub(crate) struct Monitor {
    lines: tokio::sync::Mutex<tokio::io::Lines<tokio::io::BufReader<tokio::net::TcpStream>>>,
    port: u16,
}

impl RedisServer {
    /// Begins to record the commands.
    pub(crate) async fn monitor(&self) -> Monitor {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port))
            .await
            .unwrap();
        stream.write_all(b"MONITOR\r\n").await.unwrap();
        let mut lines = tokio::io::BufReader::new(stream).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("+OK"));
        Monitor {
            lines: lines.into(),
            port: self.port,
        }
    }
}

impl Monitor {
    /// Names of the commands since the last call, without the store's clock and role checks.
    pub(crate) async fn received(&self) -> Vec<String> {
        let lines = self.lines().await;
        let names = lines.iter().filter(|line| !line.contains(" lua] "));
        let names = names.map(|line| {
            line.split_once("] ")
                .unwrap()
                .1
                .split('"')
                .nth(1)
                .unwrap()
                .to_uppercase()
        });
        names.filter(|name| name != "TIME" && name != "ROLE").collect()
    }

    /// All commands since the last call, as the server prints them.
    pub(crate) async fn lines(&self) -> Vec<String> {
        // The server reports in order, so everything before this mark arrives before it.
        ask(self.port, "ECHO mark");
        let mut received = Vec::new();
        loop {
            let line = self.lines.lock().await.next_line().await.unwrap().unwrap();
            if line.contains("\"mark\"") {
                return received;
            }
            received.push(line);
        }
    }
}

/// Sends an inline command to a port and gives the raw answer.
pub(crate) fn ask(port: u16, command: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    // The server answers what it has read, then sees the end and closes.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The key of a record, for `ask`: names are written as the bytes of their digits.
pub(crate) fn record_key(name: impl Display) -> String {
    let name = name.to_string();
    let pairs = name.as_bytes().chunks(2);
    let bytes: String = pairs
        .map(|pair| format!("\\x{}", std::str::from_utf8(pair).unwrap()))
        .collect();
    format!("\"vestibule:s{bytes}\"")
}

/// The key of the sorted set an index is in, for `ask`.
pub(crate) fn index_key(index: impl Display) -> String {
    format!("vestibule:i{{{}}}", &index.to_string()[..4])
}

/// The key of the sorted set that orders an index by creation, for `ask`.
pub(crate) fn order_key(index: impl Display) -> String {
    format!("vestibule:o{{{}}}", &index.to_string()[..4])
}
