//! The servers of a `redis://` or `redis-cluster://` address, each asked directly.

use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;

/// The servers that hold keys: the single one, or the masters.
pub(crate) struct Servers(Vec<MultiplexedConnection>);

impl Servers {
    /// Connects to the store's servers; `None` if it has none.
    pub(crate) async fn connect(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let hosts = rest.split(['?', '/']).next().unwrap_or_default();
        if !scheme.starts_with("redis") {
            return None;
        }
        let mut masters = Vec::new();
        for host in hosts.split(',') {
            let client = redis::Client::open(format!("redis://{host}")).unwrap();
            let server = client.get_multiplexed_async_connection().await.unwrap();
            if text(&server, "replication", "role").await == "master" {
                masters.push(server);
            }
        }
        Some(Self(masters))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The value that each server reports.
    pub(crate) async fn numbers(&self, section: &str, name: &str) -> Vec<f64> {
        let mut numbers = Vec::new();
        for server in &self.0 {
            numbers.push(text(server, section, name).await.parse().unwrap());
        }
        numbers
    }

    /// The sum of the values that the servers report.
    pub(crate) async fn number(&self, section: &str, name: &str) -> f64 {
        self.numbers(section, name).await.iter().sum()
    }

    pub(crate) async fn keys(&self) -> u64 {
        let mut keys = 0;
        for server in &self.0 {
            keys += ask::<u64>(server, &["DBSIZE"]).await;
        }
        keys
    }

    /// The number of event streams.
    pub(crate) async fn streams(&self) -> u64 {
        let mut streams = 0;
        for server in &self.0 {
            let found: Vec<Vec<u8>> = ask(server, &["KEYS", "vestibule:e*"]).await;
            streams += found.len() as u64;
        }
        streams
    }

    /// Memory by kind of key, from samples.
    pub(crate) async fn kinds(&self) {
        println!("  {} keys on {} servers", self.keys().await, self.count());
        for kind in ['s', 'i', 'o', 'e'] {
            let (mut bytes, mut keys) = (0, 0);
            for server in &self.0 {
                let pattern = format!("vestibule:{kind}*");
                let (_, sample): (u64, Vec<Vec<u8>>) =
                    ask(server, &["SCAN", "0", "MATCH", &pattern, "COUNT", "2000"]).await;
                for key in sample {
                    let mut command = redis::cmd("MEMORY");
                    command.arg("USAGE").arg(key);
                    bytes += command.query_async::<u64>(&mut server.clone()).await.unwrap();
                    keys += 1;
                }
            }
            if let Some(each) = u64::checked_div(bytes, keys) {
                println!("  {kind}: {each} bytes a key, of a sample of {keys}");
            }
        }
    }
}

async fn ask<T: FromRedisValue>(server: &MultiplexedConnection, command: &[&str]) -> T {
    let mut cmd = redis::cmd(command[0]);
    cmd.arg(&command[1..]);
    cmd.query_async(&mut server.clone()).await.unwrap()
}

async fn text(server: &MultiplexedConnection, section: &str, name: &str) -> String {
    let facts: String = ask(server, &["INFO", section]).await;
    let line = facts
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}
