//! Does what was removed stay away when a replica takes the master's place? (Redis, `WAIT`)
//!
//! Invariants
//! - A master that is held to its replicas (`min-replicas-to-write`) counts an ending as done once one of them has it. Others are not
//!   asked: they may have none.
//! - The connection is its own: `WAIT` holds up what comes behind it.
//! - The server that answers has neither the records nor, after `WAIT`, has one of its replicas: replication keeps the order of
//!   writes. A call that is repeated learns the same.
//! - What is not acknowledged in time is removed all the same, on this master.

use super::RedisShared;
use super::answers::unavailable;
use crate::store::{Name, StoreError};

/// Replicas that have to have an ending: as many as `min-replicas-to-write` is to say, for one of them takes the master's place.
const WANTED: usize = 1;

/// Longest a replica may take: far above a round trip between zones, below what connections wait for an answer.
const ACKNOWLEDGE_MS: u64 = 500;

/// Whether the master of this key is held to its replicas, which INFO says by how many of them are good. A user without the right
/// to ask learns no.
const IS_HELD: &str = r"
local info = redis.pcall('INFO', 'replication')
return type(info) == 'string' and string.find(info, 'min_slaves_good_slaves', 1, true) and 1 or 0
";

/// Gives 1 if a record is there. Else it writes what is to be acknowledged, and takes that away. A server that is out of memory refuses
/// what needs any, but not behind another write: sessions end when it is full.
const PROBE: &str = r"
for _, key in ipairs(KEYS) do if redis.call('EXISTS', key) == 1 then return 1 end end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], '')
redis.call('DEL', KEYS[1])
return 0
";

/// Why an ending does not count as done.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("no replica acknowledged an ending in time")]
    Replicas,
    #[error("the master still has what was ended: another one has taken its place")]
    Undone,
}

impl RedisShared {
    /// Fails unless the records are gone for good, or without names all that was removed so far. False if no replica was asked.
    pub(super) async fn acknowledged(&self, names: &[Name]) -> Result<bool, StoreError> {
        let mut keys: Vec<Vec<u8>> = names.iter().map(|name| self.keys.record(*name)).collect();
        if keys.is_empty() {
            keys = self.keys.probes(self.scattered);
        }
        let of_one_server = if self.scattered { 1 } else { keys.len() };
        let mut is_asked = false;
        // One after the other: behind a replica that is silent the connection serves no other question.
        for keys in keys.chunks(of_one_server) {
            is_asked |= self.acknowledged_by(keys).await?;
        }
        Ok(is_asked)
    }

    /// Asks the server that is to be without these keys.
    async fn acknowledged_by(&self, keys: &[Vec<u8>]) -> Result<bool, StoreError> {
        let script = |script| {
            let mut command = redis::cmd("EVAL");
            command.arg(script).arg(keys.len()).arg(keys);
            command
        };
        let is_held = self.waiting.once(&script(IS_HELD)).await;
        if !is_held.map_err(unavailable)? {
            return Ok(false);
        }
        let mut question = redis::pipe();
        question.add_command(script(PROBE));
        question.cmd("WAIT").arg(WANTED).arg(ACKNOWLEDGE_MS);
        let answer = self.waiting.together(&question).await;
        let why = match answer.map_err(unavailable)? {
            (false, WANTED..) => return Ok(true),
            (false, _) => NotKept::Replicas,
            (true, _) => NotKept::Undone,
        };
        Err(StoreError::Unavailable(Box::new(why)))
    }
}
