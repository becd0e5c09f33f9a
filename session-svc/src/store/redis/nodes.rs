//! The servers that hold keys: the one there is, or the masters of a cluster.

use std::collections::BTreeMap;

use redis::cluster_routing::Slot;
use redis::{FromRedisValue as _, Value};

use super::writes::Writes;
use super::{RedisStore, unavailable};
use crate::store::StoreError;
use crate::store::url::ServerAddress;

/// One server, addressed by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// The one there is.
    Only,
    /// A master of a cluster, as the cluster calls it.
    Master {
        /// Name or address.
        host: String,
        /// TCP port.
        port: u16,
    },
}

impl Node {
    /// `HOST:PORT`; empty for the only one.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Only => String::new(),
            Self::Master { host, port } => format!("{host}:{port}"),
        }
    }
}

impl Writes {
    /// All of them, in the order of their names.
    pub(super) async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        if !self.scattered {
            return Ok(vec![Node::Only]);
        }
        let ranges = self.ranges().await?;
        let masters = ranges
            .into_iter()
            .filter_map(|(_, servers)| servers.into_iter().next());
        let mut nodes: Vec<Node> = masters
            .map(|ServerAddress { host, port }| Node::Master { host, port })
            .collect();
        nodes.sort_unstable_by_key(Node::name);
        nodes.dedup();
        Ok(nodes)
    }

    /// A slot of each of them, where there are several.
    pub(super) async fn slots(&self) -> Result<Vec<Slot>, StoreError> {
        if !self.scattered {
            return Ok(Vec::new());
        }
        let ranges = self.ranges().await?.into_iter();
        let of_masters = ranges.filter_map(|(slot, servers)| {
            let ServerAddress { host, port } = servers.into_iter().next()?;
            Some(((host, port), slot))
        });
        let of_masters: BTreeMap<_, _> = of_masters.collect();
        Ok(of_masters.into_values().collect())
    }

    /// The first slot and the servers of each range of slots, its master first.
    async fn ranges(&self) -> Result<Vec<(Slot, Vec<ServerAddress>)>, StoreError> {
        let slots: Vec<Value> = self
            .connection
            .read(redis::cmd("CLUSTER").arg("SLOTS"))
            .await
            .map_err(unavailable)?;
        Ok(slots.into_iter().filter_map(servers).collect())
    }
}

impl RedisStore {
    /// The replicas of a cluster; nothing where there is none.
    pub(super) async fn replicas_of_cluster(&self) -> Result<Vec<ServerAddress>, StoreError> {
        if !self.writes.scattered {
            return Ok(Vec::new());
        }
        let ranges = self.writes.ranges().await?;
        let mut replicas: Vec<ServerAddress> = ranges
            .into_iter()
            .flat_map(|(_, servers)| servers.into_iter().skip(1))
            .collect();
        replicas.sort_unstable_by(|one, other| (&one.host, one.port).cmp(&(&other.host, other.port)));
        replicas.dedup();
        Ok(replicas)
    }
}

/// The servers of a range of slots: first slot, last slot, master, replicas.
fn servers(range: Value) -> Option<(Slot, Vec<ServerAddress>)> {
    let range: Vec<Value> = Vec::from_redis_value(range).ok()?;
    let mut range = range.into_iter();
    let first = Slot::new(u16::from_redis_value(range.next()?).ok()?)?;
    let servers: Option<Vec<ServerAddress>> = range.skip(1).map(server).collect();
    Some((first, servers?))
}

/// `[host, port, ID, …]`.
fn server(value: Value) -> Option<ServerAddress> {
    let mut value = Vec::<Value>::from_redis_value(value).ok()?.into_iter();
    Some(ServerAddress {
        host: String::from_redis_value(value.next()?).ok()?,
        port: u16::from_redis_value(value.next()?).ok()?,
    })
}
