//! A master, its replicas and three Sentinels on loopback.

use std::time::{Duration, Instant};

use crate::redis_server::{Engine, RedisServer, ask};

/// The Sentinels' name for the master.
pub(crate) const MASTER: &str = "sessions";

/// The longest the Sentinels may take to find each other and the replica, or to elect a master.
const AGREEMENT: Duration = Duration::from_secs(30);

/// All five processes, killed when dropped.
pub(crate) struct Sentinels {
    /// The first master and its replicas.
    pub(crate) servers: Vec<RedisServer>,
    /// The Sentinels that watch them.
    pub(crate) sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// Starts them and waits until a failover would work.
    pub(crate) fn start(engine: Engine) -> Self {
        Self::start_with(engine, &[], &[])
    }

    /// The same with further arguments. Those for TLS name `TLSPORT`; the servers then use TLS among
    /// themselves. `servers_only` are not for the Sentinels.
    pub(crate) fn start_with(engine: Engine, arguments: &[&str], servers_only: &[&str]) -> Self {
        Self::begin(engine, 1, arguments, servers_only, "")
    }

    /// Starts this many replicas. Sentinels and replicas have their own names, so the test can cut their
    /// connections while its own stays.
    pub(crate) fn start_apart(replicas: usize, servers_only: &[&str]) -> Self {
        let mut arguments = servers_only.to_vec();
        for name in ["sentinel", "replica"] {
            arguments.extend(["--user", name, "on", ">secret", "~*", "&*", "+@all"]);
        }
        arguments.extend(["--masteruser", "replica", "--masterauth", "secret"]);
        let login = format!("sentinel auth-user {MASTER} sentinel\nsentinel auth-pass {MASTER} secret\n");
        Self::begin(Engine::Redis, replicas, &[], &arguments, &login)
    }

    fn begin(
        engine: Engine,
        replicas: usize,
        arguments: &[&str],
        servers_only: &[&str],
        login: &str,
    ) -> Self {
        let of_server = [arguments, servers_only].concat();
        let master = RedisServer::start_on(engine, &of_server);
        let port = if arguments.contains(&"TLSPORT") {
            master.tls_port
        } else {
            master.port
        };
        let replica_of = ["--replicaof", "127.0.0.1", &port.to_string()];
        let mut servers = vec![master];
        servers.extend(
            (0..replicas).map(|_| RedisServer::start_on(engine, &[&of_server[..], &replica_of].concat())),
        );
        let configuration = configuration(port) + login;
        let sentinels = (0..3)
            .map(|_| RedisServer::start_sentinel(engine, &configuration, arguments))
            .collect();
        let started = Self { servers, sentinels };
        started.wait_until("the Sentinels to know everything", || {
            started.sentinels.iter().all(|sentinel| {
                let facts = sentinel.ask(&format!("SENTINEL MASTER {MASTER}"));
                fact(&facts, "num-slaves") == Some(&replicas.to_string())
                    && fact(&facts, "num-other-sentinels") == Some("2")
            }) && started.servers[1..]
                .iter()
                .all(|replica| replica.ask("INFO replication").contains("master_link_status:up"))
        });
        started
    }

    /// Cuts a server off from the Sentinels and the other servers only.
    pub(crate) fn isolate(&self, at: usize) {
        for name in ["sentinel", "replica"] {
            assert_eq!(
                self.servers[at].ask(&format!("ACL SETUSER {name} -@all")),
                "+OK\r\n"
            );
        }
        self.servers[at].ask("CLIENT KILL TYPE replica");
    }

    /// Makes a replica the master, as an operator would.
    pub(crate) fn fail_over(&self) {
        let answer = self.sentinels[0].ask(&format!("SENTINEL FAILOVER {MASTER}"));
        assert_eq!(answer, "+OK\r\n");
    }

    /// Waits until all Sentinels name a server other than the one at `than`. Returns its index.
    pub(crate) fn wait_for_another(&self, than: usize) -> usize {
        let named = |sentinel: &RedisServer| {
            let answer = sentinel.ask(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {MASTER}"));
            self.servers
                .iter()
                .position(|server| answer.contains(&format!("\r\n{}\r\n", server.port)))
        };
        self.wait_until("another master", || {
            let first = named(&self.sentinels[0]);
            first.is_some_and(|at| at != than && self.servers[at].ask("ROLE").contains("master"))
                && self.sentinels.iter().all(|sentinel| named(sentinel) == first)
        });
        named(&self.sentinels[0]).unwrap_or_default()
    }

    /// The store's address.
    pub(crate) fn url(&self) -> String {
        format!("redis-sentinel://{}/{MASTER}", self.hosts(|one| one.port))
    }

    /// The store's address over TLS, for a user of the servers.
    pub(crate) fn tls_url(&self, login: &str, ca: &str) -> String {
        let hosts = self.hosts(|one| one.tls_port);
        format!("rediss-sentinel://{login}@{hosts}/{MASTER}?ca_file={ca}")
    }

    fn hosts(&self, port: impl Fn(&RedisServer) -> u16) -> String {
        let hosts = self
            .sentinels
            .iter()
            .map(|one| format!("127.0.0.1:{}", port(one)));
        hosts.collect::<Vec<_>>().join(",")
    }

    /// Waits until all Sentinels name the second server as the master.
    pub(crate) fn wait_for_second(&self) {
        let RedisServer { port, tls_port, .. } = self.servers[1];
        self.wait_until("a new master", || {
            let ports = [port, tls_port].map(|port| format!("\r\n{port}\r\n"));
            let question = format!("SENTINEL GET-MASTER-ADDR-BY-NAME {MASTER}");
            self.sentinels
                .iter()
                .all(|sentinel| ports.iter().any(|port| sentinel.ask(&question).contains(port)))
                && ask(port, "ROLE").contains("master")
        });
    }

    fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        let started = Instant::now();
        while !done() {
            assert!(
                started.elapsed() < AGREEMENT,
                "still waiting for {what}: {}",
                self.sentinels[0].log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The master counts as down only after longer than a busy machine pauses.
fn configuration(master: u16) -> String {
    format!(
        "sentinel monitor {MASTER} 127.0.0.1 {master} 2\nsentinel down-after-milliseconds {MASTER} 1500\n\
         sentinel failover-timeout {MASTER} 3000\n"
    )
}

/// A value from a flat list of names and values in Redis format.
fn fact<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    let lines: Vec<&str> = facts.split("\r\n").collect();
    let at = lines.iter().position(|line| *line == name)?;
    lines.get(at + 2).copied()
}
