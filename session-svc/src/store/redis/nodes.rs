//! The servers that hold keys: the one there is, or the masters of a cluster.

use redis::{FromRedisValue as _, Value};

use super::unavailable;
use super::writes::Writes;
use crate::store::StoreError;

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
        let slots: Vec<Value> = self
            .connection
            .read(redis::cmd("CLUSTER").arg("SLOTS"))
            .await
            .map_err(unavailable)?;
        let mut nodes: Vec<Node> = slots.into_iter().filter_map(master).collect();
        nodes.sort_unstable_by_key(Node::name);
        nodes.dedup();
        Ok(nodes)
    }
}

/// The master of a range of slots: first slot, last slot, master, replicas.
fn master(range: Value) -> Option<Node> {
    let mut range: Vec<Value> = Vec::from_redis_value(range).ok()?;
    let master: Vec<Value> = Vec::from_redis_value(range.drain(..).nth(2)?).ok()?;
    let mut master = master.into_iter();
    let host = String::from_redis_value(master.next()?).ok()?;
    let port = u16::from_redis_value(master.next()?).ok()?;
    Some(Node::Master { host, port })
}
