//! Checks that removed records stay removed when a replica becomes the master (Redis, `WAIT`).
//!
//! Invariants
//! - If a master requires replicas (`min-replicas-to-write`), an ending is done once a replica has applied it.
//!   Other masters are not asked: they may have no replicas.
//! - It uses its own connection, because `WAIT` blocks later commands.
//! - The service first checks that the master no longer has the records. After `WAIT`, a replica no longer has
//!   them either: replication keeps the order of writes. A retry gets the same answer.
//! - Without an acknowledgement in time, the records are still removed on this master.

use super::RedisShared;
use super::answers::unavailable;
use crate::store::{Name, StoreError};

/// How many replicas must have an ending: as many as the recommended `min-replicas-to-write`.
const WANTED: usize = 1;

/// Longest wait for a replica: far above a round trip between zones, below `ANSWER_TIMEOUT`.
const ACKNOWLEDGE_MS: u64 = 500;

/// Whether the master requires replicas: only then INFO has this field. False without the right to INFO.
const IS_HELD: &str = r"
local info = redis.pcall('INFO', 'replication')
return type(info) == 'string' and string.find(info, 'min_slaves_good_slaves', 1, true) and 1 or 0
";

/// Returns 1 if a record exists. Otherwise writes and removes a key to be acknowledged. DEL comes first: a
/// server without memory rejects SET only as the first write, and sessions must still end.
const PROBE: &str = r"
for _, key in ipairs(KEYS) do if redis.call('EXISTS', key) == 1 then return 1 end end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], '')
redis.call('DEL', KEYS[1])
return 0
";

/// Why an ending is not done.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("no replica acknowledged an ending in time")]
    Replicas,
    #[error("the master still has the ended sessions: another server has become master")]
    Undone,
}

impl RedisShared {
    /// Fails unless the removal of these records is permanent; without names, of all records removed so far.
    /// Returns false if no replica was asked.
    pub(super) async fn acknowledged(&self, names: &[Name]) -> Result<bool, StoreError> {
        let mut keys: Vec<Vec<u8>> = names.iter().map(|name| self.keys.record(*name)).collect();
        if keys.is_empty() {
            keys = self.keys.probes(self.scattered);
        }
        let of_one_server = if self.scattered { 1 } else { keys.len() };
        let mut is_asked = false;
        // Sequentially: a silent replica blocks the connection.
        for keys in keys.chunks(of_one_server) {
            is_asked |= self.acknowledged_by(keys).await?;
        }
        Ok(is_asked)
    }

    /// Asks the server of these keys.
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
