//! The servers that hold keys: the one there is, or the masters of a cluster.

use std::collections::BTreeMap;

use redis::cluster_routing::Slot;
use redis::{ErrorKind, FromRedisValue as _, RedisResult, Value};

use super::connection::WorkerConnection;
use super::writes::Writes;
use super::{RedisStore, partitions, unavailable};
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
            .filter_map(|range| range.servers.into_iter().next());
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
        let of_masters = ranges.filter_map(|range| {
            let ServerAddress { host, port } = range.servers.into_iter().next()?;
            Some(((host, port), Slot::new(range.first)?))
        });
        let of_masters: BTreeMap<_, _> = of_masters.collect();
        Ok(of_masters.into_values().collect())
    }

    async fn ranges(&self) -> Result<Vec<SlotRange>, StoreError> {
        ranges(&self.connection).await.map_err(unavailable)
    }
}

/// The master of a cluster that has the slot of this key.
pub(super) async fn owner(connection: &WorkerConnection, key: &[u8]) -> RedisResult<ServerAddress> {
    let slot = partitions::slot_number(key);
    let ranges = ranges(connection).await?.into_iter();
    let mut ranges = ranges.filter(|range| (range.first..=range.last).contains(&slot));
    let owner = ranges.next().and_then(|range| range.servers.into_iter().next());
    owner.ok_or_else(|| (ErrorKind::Io, "no node has the slot").into())
}

async fn ranges(connection: &WorkerConnection) -> RedisResult<Vec<SlotRange>> {
    let ranges: Vec<Value> = connection.read(redis::cmd("CLUSTER").arg("SLOTS")).await?;
    Ok(ranges.into_iter().filter_map(SlotRange::read).collect())
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
            .flat_map(|range| range.servers.into_iter().skip(1))
            .collect();
        replicas.sort_unstable_by(|one, other| (&one.host, one.port).cmp(&(&other.host, other.port)));
        replicas.dedup();
        Ok(replicas)
    }
}

/// A range of slots and its servers, the master first.
struct SlotRange {
    first: u16,
    last: u16,
    servers: Vec<ServerAddress>,
}

impl SlotRange {
    /// First slot, last slot, master, replicas.
    fn read(range: Value) -> Option<Self> {
        let range: Vec<Value> = Vec::from_redis_value(range).ok()?;
        let mut range = range.into_iter();
        let first = u16::from_redis_value(range.next()?).ok()?;
        let last = u16::from_redis_value(range.next()?).ok()?;
        let servers: Option<Vec<ServerAddress>> = range.map(server).collect();
        let servers = servers?;
        Some(Self { first, last, servers })
    }
}

/// `[host, port, ID, …]`.
fn server(value: Value) -> Option<ServerAddress> {
    let mut value = Vec::<Value>::from_redis_value(value).ok()?.into_iter();
    Some(ServerAddress {
        host: String::from_redis_value(value.next()?).ok()?,
        port: u16::from_redis_value(value.next()?).ok()?,
    })
}
