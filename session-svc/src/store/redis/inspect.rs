//! What an operator may see of Redis: every key below the prefix, node by node, and what the servers say.
//!
//! Positions are `CURSOR` on one server and `HOST:PORT CURSOR` in a cluster, whose masters are walked one after the
//! other in the order of their addresses.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use redis::{Cmd, FromRedisValue, RedisError, RedisResult, Value};

use super::facts;
use super::nodes::Node;
use super::servers::AskedServer;
use super::{RedisStore, scripts, unavailable};
use crate::store::inspect::{Fact, FoundItem, InspectedStore, KeySpace, Sealed, Walked, resealed};
use crate::store::{RememberedName, Replaced, SessionStore as _, StoreError, codec};

/// Commands in flight at a time for one page of a walk: enough to hide the round trips, few enough not to delay
/// a service that shares the server.
const AT_ONCE: usize = 32;

/// Where a cursor begins and ends.
const START: &str = "0";

#[async_trait]
impl InspectedStore for RedisStore {
    async fn walk(
        &self,
        key_space: KeySpace,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Walked, StoreError> {
        let nodes = self.writes.nodes().await?;
        let (node, cursor) = position(&nodes, after);
        let Some(node) = node else {
            return Ok(Walked::default());
        };
        let mut command = redis::cmd("SCAN");
        command
            .arg(&cursor)
            .arg("MATCH")
            .arg(self.shared.keys.pattern(key_space));
        command.arg("COUNT").arg(limit.max(1));
        let (next, keys): (String, Vec<Vec<u8>>) = self.on(node, &command).await?;
        Ok(Walked {
            found: self.found(key_space, keys).await?,
            next: following(&nodes, node, &next),
        })
    }

    async fn exchange(&self, was: &Sealed, bytes: Vec<u8>) -> Result<Replaced, StoreError> {
        let (key, was, now) = match was {
            Sealed::Record(record) => (
                self.shared.keys.record(record.name),
                codec::encode(record),
                codec::encode(&resealed(record, bytes)),
            ),
            Sealed::Remembered { name, value } => {
                let Some(name) = RememberedName::parse(name) else {
                    return Ok(Replaced::Missing);
                };
                (self.shared.keys.remembered(name), value.clone(), bytes)
            }
        };
        let call = scripts::EXCHANGE.call().key(key);
        let outcome = call.arg(was).arg(now).run(&self.connection).await;
        if matches!(&outcome, Err(StoreError::Unavailable(error)) if is_foreign_to(&**error)) {
            return Ok(Replaced::Missing);
        }
        let outcome: u8 = outcome?;
        Ok(match outcome {
            0 => Replaced::Missing,
            1 => Replaced::Stale,
            _ => Replaced::Done,
        })
    }

    async fn facts(&self, server_memory: Option<u64>) -> Result<Vec<Fact>, StoreError> {
        let mut found = vec![Fact::fine("engine", "redis")];
        if self.shared.scattered {
            let about: String = self
                .connection
                .read(redis::cmd("CLUSTER").arg("INFO"))
                .await
                .map_err(unavailable)?;
            found.extend(facts::of_cluster(&about));
        }
        found.extend(self.sentinel_facts().await);
        for server in self.servers().await? {
            found.extend(server.facts(server_memory));
        }
        Ok(found)
    }

    async fn restart_facts(&self) -> Result<Vec<Fact>, StoreError> {
        match self.servers().await {
            Ok(servers) => Ok(servers.iter().flat_map(AskedServer::restart_facts).collect()),
            // A right that is missing will be missing the next time.
            Err(error) if lacks_right(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl RedisStore {
    async fn on<T: FromRedisValue>(&self, node: &Node, command: &Cmd) -> Result<T, StoreError> {
        let value: Value = self
            .connection
            .on_node(node, command)
            .await
            .map_err(unavailable)?;
        T::from_redis_value(value).map_err(|error| unavailable(error.into()))
    }

    async fn found(&self, key_space: KeySpace, keys: Vec<Vec<u8>>) -> Result<Vec<FoundItem>, StoreError> {
        let found = stream::iter(keys.into_iter().map(|key| self.look(key_space, key)));
        let found: Vec<Vec<FoundItem>> = found.buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn look(&self, key_space: KeySpace, key: Vec<u8>) -> Result<Vec<FoundItem>, StoreError> {
        if key_space == KeySpace::Indexes {
            return self.look_into(key).await;
        }
        let Some(name) = self.shared.keys.name_in(key_space, &key) else {
            return Ok(vec![FoundItem::Foreign]);
        };
        let mut command = redis::cmd("GET");
        command.arg(key);
        let value: RedisResult<Option<Vec<u8>>> = self.connection.read(&command).await;
        if matches!(&value, Err(error) if is_foreign(error)) {
            return Ok(vec![FoundItem::Foreign]);
        }
        let Some(value) = value.map_err(unavailable)? else {
            return Ok(Vec::new());
        };
        Ok(vec![match key_space {
            KeySpace::Remembered => FoundItem::Sealed(Sealed::Remembered { name, value }),
            KeySpace::Records | KeySpace::Indexes => match codec::decode_named(&name, &value) {
                Ok(record) => FoundItem::Sealed(Sealed::Record(record)),
                Err(_) => FoundItem::Unreadable { name },
            },
        }])
    }

    /// The indexes that share a sorted set.
    async fn look_into(&self, set: Vec<u8>) -> Result<Vec<FoundItem>, StoreError> {
        let mut command = redis::cmd("ZRANGE");
        command.arg(&set).arg(format!("({}", self.now_ms()));
        command.arg("+inf").arg("BYSCORE");
        let members: RedisResult<Vec<Vec<u8>>> = self.connection.read(&command).await;
        if matches!(&members, Err(error) if is_foreign(error)) {
            return Ok(vec![FoundItem::Foreign]);
        }
        let members = members.map_err(unavailable)?;
        let judgements = members.into_iter().map(|member| self.judged(&set, member));
        let judged: Vec<(String, bool)> = stream::iter(judgements).buffered(AT_ONCE).try_collect().await?;
        let mut indexes: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (index, leads_nowhere) in judged {
            let (entries, without_record) = indexes.entry(index).or_default();
            *entries += 1;
            *without_record += usize::from(leads_nowhere);
        }
        let found = indexes.into_iter();
        let found = found.map(|(name, (entries, without_record))| FoundItem::Index {
            name,
            entries,
            without_record,
        });
        Ok(found.collect())
    }

    /// The index an entry belongs to, and whether it leads to no record.
    async fn judged(&self, set: &[u8], member: Vec<u8>) -> Result<(String, bool), StoreError> {
        let Some((index, entry)) = self.shared.keys.found_in(set, &member) else {
            return Ok((String::new(), true));
        };
        let mut command = redis::cmd("EXISTS");
        command.arg(self.shared.keys.record_of(&entry));
        let there: bool = self.connection.read(&command).await.map_err(unavailable)?;
        if there {
            return Ok((index, false));
        }
        // The session may have ended between the two questions, and its entry with it.
        let mut command = redis::cmd("ZSCORE");
        command.arg(set).arg(member);
        let score: RedisResult<Option<String>> = self.connection.read(&command).await;
        match score {
            Err(error) if is_foreign(&error) => Ok((index, false)),
            score => Ok((index, score.map_err(unavailable)?.is_some())),
        }
    }
}

/// Whether what is kept under a name is of a type this service never writes there.
fn is_foreign(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE")
}

/// Whether the user of the store lacks a right.
pub(crate) fn lacks_right(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else {
        return false;
    };
    let cause = cause.downcast_ref::<RedisError>();
    cause.is_some_and(|cause| cause.code() == Some("NOPERM"))
}

fn is_foreign_to(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<RedisError>().is_some_and(|error| {
        // A script carries it within its own message.
        is_foreign(error) || error.to_string().contains("WRONGTYPE")
    })
}

/// The node and the cursor a walk goes on with.
fn position<'a>(nodes: &'a [Node], after: Option<&str>) -> (Option<&'a Node>, String) {
    let Some(after) = after else {
        return (nodes.first(), START.to_owned());
    };
    let (name, cursor) = after.rsplit_once(' ').unwrap_or(("", after));
    match nodes.iter().find(|node| node.name() == name) {
        Some(node) => (Some(node), cursor.to_owned()),
        // It left the cluster: go on with the next.
        None => (
            nodes.iter().find(|node| node.name().as_str() > name),
            START.to_owned(),
        ),
    }
}

/// Where the walk goes on after a page of `node`.
fn following(nodes: &[Node], node: &Node, cursor: &str) -> Option<String> {
    let at = |node: &Node, cursor: &str| match node {
        Node::Only => cursor.to_owned(),
        Node::Master { .. } => format!("{} {cursor}", node.name()),
    };
    if cursor != START {
        return Some(at(node, cursor));
    }
    let next = nodes.iter().find(|other| other.name() > node.name())?;
    Some(at(next, START))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(port: u16) -> Node {
        Node::Master {
            host: "10.0.0.1".to_owned(),
            port,
        }
    }

    #[test]
    fn a_walk_goes_through_all_masters_and_ends() {
        let nodes = [master(7001), master(7002)];
        let (node, cursor) = position(&nodes, None);
        assert_eq!((node, cursor.as_str()), (Some(&nodes[0]), "0"));
        let next = following(&nodes, &nodes[0], "17").unwrap();
        assert_eq!(position(&nodes, Some(&next)), (Some(&nodes[0]), "17".to_owned()));
        let next = following(&nodes, &nodes[0], "0").unwrap();
        assert_eq!(position(&nodes, Some(&next)), (Some(&nodes[1]), "0".to_owned()));
        assert_eq!(following(&nodes, &nodes[1], "0"), None);
    }

    #[test]
    fn a_master_that_left_is_passed_over() {
        let left = following(&[master(7001), master(7002)], &master(7001), "17").unwrap();
        let nodes = [master(7002)];
        assert_eq!(position(&nodes, Some(&left)), (Some(&nodes[0]), "0".to_owned()));
    }

    #[test]
    fn one_server_has_a_bare_cursor() {
        let nodes = [Node::Only];
        assert_eq!(following(&nodes, &Node::Only, "5").as_deref(), Some("5"));
        assert_eq!(position(&nodes, Some("5")), (Some(&nodes[0]), "5".to_owned()));
        assert_eq!(following(&nodes, &Node::Only, "0"), None);
    }
}
