//! What is done on the server in one step.
//!
//! `KEYS` of a write are the record's, the events' and the indexes'; in a cluster the record's alone.
//! Values are compared as bytes: a record's version stands at the place `codec` says.

use std::sync::OnceLock;

use deadpool_redis::redis::{self, Cmd, ErrorKind, FromRedisValue, Script, ServerErrorKind, ToRedisArgs};

use crate::store::StoreError;

use super::connections::Connections;
use super::unavailable;

/// Enters a member into an index, trims what is past, and lets the index expire with its last entry.
/// `mode` is a condition of ZADD or empty.
const ENTER_INDEX: &str = r"
local function enter(key, mode, expires, member)
  if mode == '' then redis.call('ZADD', key, expires, member) else redis.call('ZADD', key, mode, expires, member) end
  local time = redis.call('TIME')
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  if last[2] then redis.call('PEXPIREAT', key, string.format('%.0f', last[2])) end
end
";

const PUBLISH: &str = r"
local function publish(key, kept, event)
  if key then redis.call('XADD', key, 'MAXLEN', '~', kept, '*', 'e', event) end
end
";

/// ARGV: value, expiry, index member, events kept, event. Gives 1, or 0 if the name is taken.
pub(super) static INSERT: Stored = Stored::new(&[
    ENTER_INDEX,
    PUBLISH,
    r"
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) then return 0 end
for i = 3, #KEYS do enter(KEYS[i], '', ARGV[2], ARGV[3]) end
publish(KEYS[2], ARGV[4], ARGV[5])
return 1
",
]);

/// ARGV: value, expiry, index member, events kept, event, expected version, whether there is an event.
/// Gives 2, or 1 if the version is another, or 0 if there is no such record.
pub(super) static REPLACE: Stored = Stored::new(&[
    ENTER_INDEX,
    PUBLISH,
    r"
local header = redis.call('GETRANGE', KEYS[1], 0, 16)
if header == '' then return 0 end
if string.sub(header, 2, 9) ~= ARGV[6] then return 1 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
if string.sub(header, 10, 17) ~= string.sub(ARGV[1], 10, 17) then
  for i = 3, #KEYS do enter(KEYS[i], '', ARGV[2], ARGV[3]) end
end
if ARGV[7] == '1' then publish(KEYS[2], ARGV[4], ARGV[5]) end
return 2
",
]);

/// ARGV: index member, events kept, event. Gives the record that was there.
pub(super) static REMOVE: Stored = Stored::new(&[
    PUBLISH,
    r"
local value = redis.call('GET', KEYS[1])
if not value then return false end
redis.call('DEL', KEYS[1])
for i = 3, #KEYS do redis.call('ZREM', KEYS[i], ARGV[1]) end
publish(KEYS[2], ARGV[2], ARGV[3])
return value
",
]);

/// KEYS: an index. ARGV: expiry, index member. For clusters; an entry's expiry is only ever moved on.
pub(super) static ENTER: Stored = Stored::new(&[ENTER_INDEX, "enter(KEYS[1], 'GT', ARGV[1], ARGV[2])"]);

/// ARGV: holder, milliseconds. Gives the fence, or nothing if the lease is held.
pub(super) static ACQUIRE: Stored = Stored::new(&[r"
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local time = redis.call('TIME')
local fence = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], fence .. ':' .. ARGV[1], 'PX', ARGV[2])
return fence
"]);

/// ARGV: "fence:holder", milliseconds.
pub(super) static RENEW: Stored = Stored::new(&[r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"]);

/// ARGV: "fence:holder".
pub(super) static RELEASE: Stored = Stored::new(&[r"
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.status_reply('OK')
"]);

/// ARGV: value, milliseconds. Gives what was there.
pub(super) static REMEMBER: Stored = Stored::new(&[r"
local value = redis.call('GET', KEYS[1])
if value then return value end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false
"]);

/// A script the server keeps by its hash.
pub(super) struct Stored {
    parts: &'static [&'static str],
    made: OnceLock<(String, Script)>,
}

impl Stored {
    const fn new(parts: &'static [&'static str]) -> Self {
        Self {
            parts,
            made: OnceLock::new(),
        }
    }

    fn made(&self) -> &(String, Script) {
        self.made.get_or_init(|| {
            let text = self.parts.concat();
            let script = Script::new(&text);
            (text, script)
        })
    }

    /// A call of it without keys and arguments yet.
    pub(super) fn call(&'static self) -> Call {
        Call {
            script: self,
            keys: Vec::new(),
            arguments: Vec::new(),
        }
    }
}

/// A script with its keys and arguments.
pub(super) struct Call {
    script: &'static Stored,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    pub(super) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    pub(super) fn arg<T: ToRedisArgs>(mut self, argument: T) -> Self {
        self.arguments.extend(argument.to_redis_args());
        self
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command
            .arg(script)
            .arg(self.keys.len())
            .arg(&self.keys)
            .arg(&self.arguments);
        command
    }

    /// Runs it once: whether a write whose answer was lost has been done cannot be known here.
    pub(super) async fn run<T: FromRedisValue>(&self, connections: &Connections) -> Result<T, StoreError> {
        let (text, script) = self.script.made();
        let answer = connections
            .once(&self.command("EVALSHA", script.get_hash()))
            .await;
        let answer = match answer {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                connections.once(&self.command("EVAL", text)).await
            }
            answer => answer,
        };
        answer.map_err(unavailable)
    }
}
