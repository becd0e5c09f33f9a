//! Scripts: what the server does in one step.
//!
//! On one server, `KEYS` of a write are the record, the event stream and two sets of each index: by expiry and
//! by creation. In a cluster, `KEYS` has only the record. The candidate streams replace the index members in
//! `ARGV`: on its own node, a script may use keys that it does not declare. The documented access list
//! grants all commands used. Values are compared as bytes: a record's version is at the offset of `codec`.

use std::sync::OnceLock;

use redis::{self, Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, ToRedisArgs};

use crate::store::StoreError;

use super::answers::{ConnectionAction, consequence, unavailable};
use super::pool::WorkerConnection;

/// Functions available to every script.
///
/// `now` returns the server's time in milliseconds since the Unix epoch, as digits.
///
/// `enter` adds a member to an index, trims a bounded number of expired ones, and makes the index expire with
/// its last entry. `mode` is a condition of ZADD or empty. The set by creation is empty while the set by expiry
/// is small. Once that becomes large, the set by creation gets all its entries, and from then on each new one.
///
/// `enter_all` adds a record to its indexes: sets from `KEYS[3]` on, members from `ARGV[at]` on.
///
/// `publish` publishes in the stream `key`. In a cluster, it uses the first stream from `ARGV[at]` on that
/// this node has. It returns whether it did.
///
/// `holder_of` returns the holder in the value of a lease ("serial:holder"); nothing without a lease.
const LIBRARY: &str = r"
local small = 128
local function now()
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local function enter(key, order, mode, expires, member)
  local is_new = (mode == '' and redis.call('ZADD', key, expires, member) or redis.call('ZADD', key, mode, expires, member)) == 1
  local past = redis.call('ZRANGE', key, '-inf', now(), 'BYSCORE', 'LIMIT', 0, 100)
  if #past > 0 then
    redis.call('ZREM', key, unpack(past))
    redis.call('ZREM', order, unpack(past))
  end
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  if not last then return end
  last = string.format('%.0f', last)
  redis.call('PEXPIREAT', key, last)
  local beyond = redis.call('ZRANGE', key, small, small + 1)
  if #beyond == 0 then return end
  local ordered = #beyond == 1 and is_new and redis.call('ZRANGE', key, 0, -1) or {member}
  for _, one in ipairs(ordered) do redis.call('ZADD', order, 0, one) end
  redis.call('PEXPIREAT', order, last)
end
local function enter_all(expires, at)
  for i = 3, #KEYS, 2 do enter(KEYS[i], KEYS[i + 1], '', expires, ARGV[at + (i - 3) / 2]) end
end
local function publish(key, kept, event, at)
  if key then redis.call('XADD', key, 'MAXLEN', '~', kept, '*', 'e', event) return true end
  for i = at, #ARGV do
    local added = redis.pcall('XADD', ARGV[i], 'MAXLEN', '~', kept, '*', 'e', event)
    if type(added) == 'string' then return true end
  end
  return false
end
local function holder_of(key)
  local held = redis.call('GET', key)
  return held and (string.match(held, '^%d*:(.*)$') or held)
end
";

/// The answer of a successful write whose event still has to be published.
pub(super) const TO_PUBLISH: u8 = 3;

/// ARGV: value, expiry, events kept, event, barrier key or empty, index members. Returns 1 if done, 0 if the
/// name is taken, 2 if the barrier exists, or 3 if done without its event.
pub(super) static INSERT: Stored = Stored::new(
    "insert",
    r"
if ARGV[5] ~= '' and redis.call('EXISTS', ARGV[5]) == 1 then return 2 end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) then return 0 end
enter_all(ARGV[2], 6)
if not publish(KEYS[2], ARGV[3], ARGV[4], 6) then return 3 end
return 1
",
);

/// ARGV: value, expiry, events kept, event, expected version, whether there is an event, index members.
/// Returns 2 if done, 1 for another version, 0 without the record, or 3 if done without its event. Writes
/// entries only if expiry or indexes changed. Entries of indexes that the record left stay until they expire.
pub(super) static REPLACE: Stored = Stored::new(
    "replace",
    r"
local head = 26 + 18 * string.byte(ARGV[1], 26)
local header = redis.call('GETRANGE', KEYS[1], 0, head - 1)
if header == '' then return 0 end
if string.sub(header, 2, 9) ~= ARGV[5] then return 1 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
if string.sub(header, 10) ~= string.sub(ARGV[1], 10, head) then enter_all(ARGV[2], 7) end
if ARGV[6] == '1' and not publish(KEYS[2], ARGV[3], ARGV[4], 7) then return 3 end
return 2
",
);

/// KEYS: the record, and on one server the event stream. ARGV: events kept, event, prefix of keys, the record's
/// name, and in a cluster the streams. Returns the removed record, and whether its event is published. On one
/// server it reads the indexes from the record; if that is unreadable, the entries stay until they expire.
/// DEL comes first: a server without memory rejects other commands only as the script's first write, and
/// endings must work when it is full.
pub(super) static REMOVE: Stored = Stored::new(
    "remove",
    r"
local function leave(value)
  if string.byte(value, 1) ~= 1 then return end
  local ends, at = string.sub(value, 18, 25) .. ARGV[4], 27
  for _ = 1, string.byte(value, 26) or 0 do
    local high, low, one, other = string.byte(value, at, at + 3)
    if not other then return end
    local length = high % 128 * 256 + low
    local set, begins = string.format('{%02x%02x}', one, other), string.sub(value, at + 4, at + 1 + length)
    redis.call('ZREM', ARGV[3] .. 'i' .. set, begins .. ends)
    redis.call('ZREM', ARGV[3] .. 'o' .. set, begins .. ends)
    at = at + 2 + length
  end
end
local value = redis.call('GET', KEYS[1])
if not value then return false end
redis.call('DEL', KEYS[1])
if KEYS[2] then leave(value) end
return {value, publish(KEYS[2], ARGV[1], ARGV[2], 5) and 1 or 0}
",
);

/// KEYS: the sets of an index, by expiry and by creation. ARGV: prefix of its entries; end of the entry to
/// continue after; how many. Returns 1 and the ends of all unexpired entries of a small set, by expiry; or 0
/// and the ends of the requested entries, the newest first.
pub(super) static LIST: Stored = Stored::new(
    "list",
    r"
local begins = ARGV[1]
local found = redis.call('ZRANGE', KEYS[1], '(' .. now(), '+inf', 'BYSCORE', 'LIMIT', 0, small + 1)
local is_small = #found <= small
if not is_small then
  found = redis.call('ZRANGE', KEYS[2], '(' .. begins .. ARGV[2], '[' .. begins, 'BYLEX', 'REV', 'LIMIT', 0, ARGV[3])
end
local ends = {}
for _, entry in ipairs(found) do
  if string.sub(entry, 1, #begins) == begins then ends[#ends + 1] = string.sub(entry, #begins + 1) end
end
return {is_small and 1 or 0, ends}
",
);

/// KEYS: the sets of an index, by expiry and by creation. ARGV: expiry, index member. For clusters. Expiry
/// never moves back.
pub(super) static ENTER: Stored = Stored::new("enter", "enter(KEYS[1], KEYS[2], 'GT', ARGV[1], ARGV[2])");

/// ARGV: holder, milliseconds. Returns the serial, or nothing if another caller holds the lease.
pub(super) static ACQUIRE: Stored = Stored::new(
    "acquire",
    r"
local holder = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return false end
local time = redis.call('TIME')
local serial = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], serial .. ':' .. ARGV[1], 'PX', ARGV[2])
return serial
",
);

/// ARGV: holder, milliseconds.
pub(super) static RENEW: Stored = Stored::new(
    "renew",
    r"
if holder_of(KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
",
);

/// ARGV: "serial:holder".
pub(super) static RELEASE: Stored = Stored::new(
    "release",
    r"
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.status_reply('OK')
",
);

/// ARGV: value, milliseconds. Returns the previous value.
pub(super) static REMEMBER: Stored = Stored::new(
    "remember",
    r"
local value = redis.call('GET', KEYS[1])
if value then return value end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false
",
);

/// A script that the server caches by its hash.
pub(super) struct Stored {
    name: &'static str,
    own: &'static str,
    /// Its text and its hash.
    made: OnceLock<(String, String)>,
}

impl Stored {
    const fn new(name: &'static str, own: &'static str) -> Self {
        Self {
            name,
            own,
            made: OnceLock::new(),
        }
    }

    /// A call of the script, without keys and arguments yet.
    pub(super) fn call(&'static self) -> ScriptCall {
        ScriptCall {
            script: self,
            keys: Vec::new(),
            arguments: Vec::new(),
        }
    }
}

/// A script with its keys and arguments.
pub(super) struct ScriptCall {
    script: &'static Stored,
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl ScriptCall {
    pub(super) fn key(mut self, key: Vec<u8>) -> Self {
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

    /// Runs the script once. After a lost answer it is unknown whether a write was done.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        connection: &WorkerConnection,
    ) -> Result<T, StoreError> {
        self.once(connection).await.map_err(unavailable)
    }

    /// Runs a script that only reads, with retries.
    pub(super) async fn read<T: FromRedisValue>(
        &self,
        connection: &WorkerConnection,
    ) -> Result<T, StoreError> {
        match self.once(connection).await {
            Err(error) if consequence(&error) == ConnectionAction::Close => self.run(connection).await,
            answer => answer.map_err(unavailable),
        }
    }

    async fn once<T: FromRedisValue>(&self, connection: &WorkerConnection) -> RedisResult<T> {
        let Stored { name, own, made } = self.script;
        let (text, hash) = made.get_or_init(|| {
            let text = [LIBRARY, own].concat();
            let hash = Script::new(&text).get_hash().to_owned();
            (text, hash)
        });
        let known = self.command("EVALSHA", hash);
        match connection.once_by(&known, Some(name)).await {
            // The server no longer has the script, for example after a restart.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                connection.once_by(&self.command("EVAL", text), Some(name)).await
            }
            answer => answer,
        }
    }
}
