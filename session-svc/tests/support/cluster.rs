//! A cluster on loopback: three masters, with replicas on request.

#![expect(clippy::expect_used, reason = "a failure here fails the test")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::redis_server::{Engine, RedisServer, free_port};

/// Masters of a cluster.
const MASTERS: usize = 3;

/// Longest the nodes may take to agree.
const AGREEMENT: Duration = Duration::from_secs(30);

/// Nodes of a cluster, killed when dropped.
pub(crate) struct Cluster {
    /// The nodes; the first three are the first masters.
    pub(crate) nodes: Vec<RedisServer>,
}

impl Cluster {
    /// Starts three masters, joins them and waits until every slot is served.
    pub(crate) fn start(engine: Engine) -> Self {
        Self::start_with(engine, 0, &[])
    }

    /// The same with `replicas` of each master, and further arguments of the nodes.
    pub(crate) fn start_with(engine: Engine, replicas: usize, further: &[&str]) -> Self {
        let nodes = (0..MASTERS * (1 + replicas)).map(|_| {
            let bus = free_port().to_string();
            let mut arguments = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
            arguments.extend(["--cluster-config-file", "nodes.conf", "--cluster-port", &bus]);
            // A missing node takes only its own slots with it.
            arguments.extend(["--cluster-require-full-coverage", "no"]);
            arguments.extend(further);
            RedisServer::start_on(engine, &arguments)
        });
        let cluster = Self {
            nodes: nodes.collect(),
        };
        let addresses = cluster
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port));
        let mut command = Command::new("redis-cli");
        command
            .args(["--cluster", "create"])
            .args(addresses)
            .args(["--cluster-replicas", &replicas.to_string()])
            .arg("--cluster-yes")
            .stdin(Stdio::null());
        let output = command.output().unwrap_or_else(|error| {
            panic!("redis-cli cannot be started ({error}): install it with `apt-get install redis-tools`")
        });
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        cluster.wait_until_whole();
        cluster
    }

    /// Waits until every node reports all slots served and every replica in sync.
    pub(crate) fn wait_until_whole(&self) {
        self.wait_until("a whole cluster", |node| {
            let facts = node.ask("CLUSTER INFO");
            let replication = node.ask("INFO replication");
            let copied = replication.contains("role:master") || replication.contains("master_link_status:up");
            facts.contains("cluster_state:ok") && facts.contains("cluster_slots_ok:16384") && copied
        });
    }

    /// Waits until every node except those left out reports a failover.
    pub(crate) fn wait_until_served_without(&self, dead: usize) {
        let started = Instant::now();
        let others = || self.nodes.iter().enumerate().filter(|(at, _)| *at != dead);
        let served = |node: &RedisServer| {
            let facts = node.ask("CLUSTER INFO");
            facts.contains("cluster_slots_ok:16384") && facts.contains("cluster_slots_fail:0")
        };
        while !others().all(|(_, node)| served(node)) {
            assert!(started.elapsed() < AGREEMENT, "no replica took over");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait_until(&self, what: &str, done: impl Fn(&RedisServer) -> bool) {
        let started = Instant::now();
        while !self.nodes.iter().all(&done) {
            assert!(
                started.elapsed() < AGREEMENT,
                "still waiting for {what}: {}",
                self.nodes[0].ask("CLUSTER NODES")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The store's address.
    pub(crate) fn url(&self) -> String {
        format!("redis-cluster://{}", self.hosts(|one| one.port))
    }

    /// The store's address over TLS, for a user of the nodes.
    pub(crate) fn tls_url(&self, login: &str, ca: &str) -> String {
        format!(
            "rediss-cluster://{login}@{}?ca_file={ca}",
            self.hosts(|one| one.tls_port)
        )
    }

    fn hosts(&self, port: impl Fn(&RedisServer) -> u16) -> String {
        let hosts = self.nodes.iter().map(|one| format!("127.0.0.1:{}", port(one)));
        hosts.collect::<Vec<_>>().join(",")
    }

    /// Which master has a key's slot.
    pub(crate) fn owner(&self, key: &str) -> usize {
        let owns_key = |node: &RedisServer| !node.ask(&format!("EXISTS {key}")).starts_with("-MOVED");
        self.nodes
            .iter()
            .position(owns_key)
            .expect("a node that has the key's slot")
    }
}
