//! A cluster of three masters on loopback.

#![expect(clippy::expect_used, reason = "a failure here fails the test")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::redis_server::{RedisServer, free_port};

/// Longest the nodes may take to agree.
const AGREEMENT: Duration = Duration::from_secs(30);

/// Three nodes, killed when dropped.
pub(crate) struct Cluster {
    /// The nodes, all masters.
    pub(crate) nodes: Vec<RedisServer>,
}

impl Cluster {
    /// Starts them, joins them and waits until every slot is served.
    pub(crate) fn start() -> Self {
        let nodes = (0..3).map(|_| {
            let bus = free_port().to_string();
            let mut arguments = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
            arguments.extend(["--cluster-config-file", "nodes.conf", "--cluster-port", &bus]);
            // A node that is away takes only its own slots with it.
            arguments.extend(["--cluster-require-full-coverage", "no"]);
            RedisServer::start(&arguments)
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

    /// Waits until every node says that all slots are served.
    pub(crate) fn wait_until_whole(&self) {
        let started = Instant::now();
        let whole = |node: &RedisServer| {
            let facts = node.ask("CLUSTER INFO");
            facts.contains("cluster_state:ok") && facts.contains("cluster_slots_ok:16384")
        };
        while !self.nodes.iter().all(whole) {
            assert!(
                started.elapsed() < AGREEMENT,
                "no cluster: {}",
                self.nodes[0].ask("CLUSTER NODES")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The store's address.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = self
            .nodes
            .iter()
            .map(|one| format!("127.0.0.1:{}", one.port))
            .collect();
        format!("redis-cluster://{}", hosts.join(","))
    }

    /// Which node has a key's slot.
    pub(crate) fn owner(&self, key: &str) -> usize {
        let asked = |node: &RedisServer| !node.ask(&format!("EXISTS {key}")).starts_with("-MOVED");
        self.nodes
            .iter()
            .position(asked)
            .expect("a node that has the key's slot")
    }
}
