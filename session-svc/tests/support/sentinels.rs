//! A master, a replica and three Sentinels on loopback.

use std::time::{Duration, Instant};

use crate::redis_server::{RedisServer, ask};

/// What the Sentinels call the master.
pub(crate) const MASTER: &str = "sessions";

/// Longest the Sentinels may take to know one another and the replica, or to agree on a new master.
const AGREEMENT: Duration = Duration::from_secs(30);

/// All five processes, killed when dropped.
pub(crate) struct Sentinels {
    /// The first master and its replica.
    pub(crate) servers: [RedisServer; 2],
    /// Those who watch them.
    pub(crate) sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// Starts them and waits until a failover would work.
    pub(crate) fn start() -> Self {
        let master = RedisServer::start(&[]);
        let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
        let sentinels = (0..3)
            .map(|_| RedisServer::start_sentinel(&configuration(master.port)))
            .collect();
        let started = Self {
            servers: [master, replica],
            sentinels,
        };
        started.wait_until("the Sentinels to know everything", || {
            started.sentinels.iter().all(|sentinel| {
                let facts = sentinel.ask(&format!("SENTINEL MASTER {MASTER}"));
                fact(&facts, "num-slaves") == Some("1") && fact(&facts, "num-other-sentinels") == Some("2")
            }) && started.servers[1]
                .ask("INFO replication")
                .contains("master_link_status:up")
        });
        started
    }

    /// The store's address.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = self
            .sentinels
            .iter()
            .map(|one| format!("127.0.0.1:{}", one.port))
            .collect();
        format!("redis-sentinel://{}/{MASTER}", hosts.join(","))
    }

    /// Waits until all Sentinels name `port` as the master.
    pub(crate) fn wait_for_master(&self, port: u16) {
        self.wait_until("a new master", || {
            let named = format!("\r\n{port}\r\n");
            let question = format!("SENTINEL GET-MASTER-ADDR-BY-NAME {MASTER}");
            self.sentinels
                .iter()
                .all(|sentinel| sentinel.ask(&question).contains(&named))
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

fn configuration(master: u16) -> String {
    format!(
        "sentinel monitor {MASTER} 127.0.0.1 {master} 2\nsentinel down-after-milliseconds {MASTER} 500\n\
         sentinel failover-timeout {MASTER} 3000\n"
    )
}

/// A value of a flat list of names and values as Redis sends it.
fn fact<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    let lines: Vec<&str> = facts.split("\r\n").collect();
    let at = lines.iter().position(|line| *line == name)?;
    lines.get(at + 2).copied()
}
