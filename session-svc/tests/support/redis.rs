//! Real Redis servers for tests: each on a free port of loopback, in a directory of its own, killed when
//! dropped.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]
#![expect(dead_code, reason = "each test uses its part of it")]

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

/// A running `redis-server`.
pub(crate) struct RedisServer {
    child: Option<Child>,
    directory: TempDir,
    /// Its port on 127.0.0.1 (TLS if it was started with `--tls-port PORT`).
    pub(crate) port: u16,
    arguments: Vec<String>,
    /// Configuration file's content; Sentinels need one.
    configuration: Option<String>,
}

/// A port nobody listens on at this moment.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

impl RedisServer {
    /// Starts one without persistence, with further arguments; `PORT` in them becomes its port.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, None)
    }

    /// Starts a Sentinel with this configuration.
    pub(crate) fn start_sentinel(configuration: &str) -> Self {
        Self::start_with(&["--sentinel"], Some(configuration.to_owned()))
    }

    fn start_with(arguments: &[&str], configuration: Option<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut server = Self {
            child: None,
            directory,
            port: 0,
            arguments,
            configuration,
        };
        for _ in 0..ATTEMPTS {
            server.port = free_port();
            server.launch();
            if server.answers() {
                return server;
            }
            server.kill();
        }
        panic!("redis-server does not start: {}", server.log());
    }

    fn launch(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
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
        if !self.arguments.iter().any(|argument| argument == "--tls-port") {
            command.args(["--port", &port]);
        }
        command.args(
            self.arguments
                .iter()
                .map(|argument| argument.replace("PORT", &port)),
        );
        command.arg("--dir").arg(self.directory.path());
        let log = std::fs::File::create(self.directory.path().join("log")).unwrap();
        command
            .stdin(Stdio::null())
            .stderr(log.try_clone().unwrap())
            .stdout(log);
        let started = command.spawn();
        self.child = Some(started.unwrap_or_else(|error| {
            panic!("redis-server cannot be started ({error}): install it with `apt-get install redis-server`")
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

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
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
        assert!(
            self.answers(),
            "redis-server does not start again: {}",
            self.log()
        );
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

/// Sends an inline command to a port and gives the raw answer.
pub(crate) fn ask(port: u16, command: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    // The server answers what it has read before it sees the end and hangs up.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
