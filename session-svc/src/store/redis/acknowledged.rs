//! Does what was removed stay away when a replica takes the master's place? (Redis, `WAIT`)
//!
//! Invariants
//! - Its connection is its own: `WAIT` holds up what comes behind it.
//! - The server that answers has neither the records nor, after `WAIT`, have so many of its replicas: replication keeps the order of
//!   writes. Which server the removal went to does not matter, and neither does who removed: a call that is repeated learns the same.
//! - What is not acknowledged in time is removed all the same, on this master.

use futures_util::future::try_join_all;
use redis::cluster_routing::Slot;

use super::connection::WorkerConnection;
use super::keys::KeyNames;
use super::unavailable;
use crate::store::{Name, StoreError};

/// Longest the replicas may take: far above a round trip between zones, below what connections wait for an answer.
const ACKNOWLEDGE_MS: u64 = 500;

/// Writes what is to be acknowledged. A server that is out of memory refuses what needs any, but not behind another write: sessions
/// end when it is full.
const PROBE: &str = "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], '', 'PX', ARGV[1])";

/// It is gone after this.
const PROBE_MS: u64 = 1_000;

/// Why an ending does not count as done.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("{has} of {wanted} replicas acknowledged an ending in time")]
    Replicas { has: usize, wanted: usize },
    #[error("the master still has what was ended: another one has taken its place")]
    Undone,
}

/// Asks the replicas.
#[derive(Clone)]
pub(super) struct Acknowledgements {
    pub(super) connection: WorkerConnection,
    pub(super) keys: KeyNames,
    /// Whether keys live on several nodes.
    pub(super) scattered: bool,
    /// How many replicas; none are asked if it is 0.
    pub(super) wanted: usize,
}

impl Acknowledgements {
    /// Fails unless the records are gone for good.
    pub(super) async fn removed(&self, names: &[Name]) -> Result<(), StoreError> {
        let keys: Vec<Vec<u8>> = names.iter().map(|name| self.keys.record(*name)).collect();
        if self.scattered {
            let slots = keys.iter().map(|key| self.of_slot(key, Slot::for_key(key)));
            return try_join_all(slots).await.map(drop);
        }
        self.of(&keys, self.keys.probe()).await
    }

    /// Fails unless all that was written so far has been acknowledged; in a cluster by the replicas of the masters that have these
    /// slots.
    pub(super) async fn all(&self, slots: &[Slot]) -> Result<(), StoreError> {
        let nobodys = self.keys.nobodys_lease();
        if !self.scattered {
            return self.of(&[nobodys], self.keys.probe()).await;
        }
        let keys: Vec<_> = slots
            .iter()
            .map(|slot| (in_slot(nobodys.clone(), *slot), *slot))
            .collect();
        try_join_all(keys.iter().map(|(key, slot)| self.of_slot(key, *slot)))
            .await
            .map(drop)
    }

    async fn of_slot(&self, key: &[u8], slot: Slot) -> Result<(), StoreError> {
        self.of(&[key.to_vec()], in_slot(self.keys.probe(), slot)).await
    }

    /// Asks the replicas of the server that is to be without these keys.
    async fn of(&self, keys: &[Vec<u8>], probe: Vec<u8>) -> Result<(), StoreError> {
        let mut question = redis::pipe();
        question.cmd("EXISTS").arg(keys);
        question
            .cmd("EVAL")
            .arg(PROBE)
            .arg(1)
            .arg(probe)
            .arg(PROBE_MS)
            .ignore();
        question.cmd("WAIT").arg(self.wanted).arg(ACKNOWLEDGE_MS);
        let answer = self.connection.together(&question).await;
        let (there, has): (usize, usize) = answer.map_err(unavailable)?;
        let wanted = self.wanted;
        let why = match (there, has) {
            (0, has) if has >= wanted => return Ok(()),
            (0, has) => NotKept::Replicas { has, wanted },
            _ => NotKept::Undone,
        };
        Err(StoreError::Unavailable(Box::new(why)))
    }
}

/// A key in a slot (Redis Cluster Specification, "Hash tags"). There are 16,384 of them, so a tag is found.
fn in_slot(begins: Vec<u8>, slot: Slot) -> Vec<u8> {
    let mut tags = (0_u32..).map(|tag| format!("{{{tag}}}"));
    let tag = tags.find(|tag| Slot::for_key(tag) == slot);
    [begins, tag.unwrap_or_default().into_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_key() {
        for slot in (0..16_384).step_by(997).map(|slot| Slot::new(slot).unwrap()) {
            let probe = in_slot(b"vestibule:w".to_vec(), slot);
            assert!(probe.starts_with(b"vestibule:w{"), "{probe:?}");
            assert_eq!(Slot::for_key(&probe), slot);
        }
    }
}
