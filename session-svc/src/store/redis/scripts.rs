//! What is done on the server in one step.
//!
//! `KEYS` of a write are the record's, the events' and its indexes' sets; in a cluster the record's alone.
//! Values are compared as bytes: a record's version stands at the place `codec` says.

use std::sync::OnceLock;

use deadpool_redis::redis::{
    self, Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, ToRedisArgs,
};

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

/// ARGV: value, expiry, events kept, event, index members. Gives 1, or 0 if the name is taken.
pub(super) static INSERT: Stored = Stored::new(&[
    ENTER_INDEX,
    PUBLISH,
    r"
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) then return 0 end
for i = 3, #KEYS do enter(KEYS[i], '', ARGV[2], ARGV[i + 2]) end
publish(KEYS[2], ARGV[3], ARGV[4])
return 1
",
]);

/// ARGV: value, expiry, events kept, event, expected version, whether there is an event, bytes of the value before its
/// payload, index members. Gives 2, or 1 if the version is another, or 0 if there is no such record. Entries are written
/// only where expiry or indexes are others than before; one the record is not found by any more stays until it expires.
pub(super) static REPLACE: Stored = Stored::new(&[
    ENTER_INDEX,
    PUBLISH,
    r"
local header = redis.call('GETRANGE', KEYS[1], 0, ARGV[7] - 1)
if header == '' then return 0 end
if string.sub(header, 2, 9) ~= ARGV[5] then return 1 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
if string.sub(header, 10) ~= string.sub(ARGV[1], 10, ARGV[7]) then
  for i = 3, #KEYS do enter(KEYS[i], '', ARGV[2], ARGV[i + 5]) end
end
if ARGV[6] == '1' then publish(KEYS[2], ARGV[3], ARGV[4]) end
return 2
",
]);

/// KEYS: the record's, and outside a cluster the events'. ARGV: events kept, event, prefix of keys, the record's
/// key without it. Gives the record that was there. Outside a cluster it reads from the record which indexes
/// it leaves; of a record it cannot read the entries are left to expiry. Removing comes first: a server that is out of memory refuses a
/// script at its first command that needs any, and none behind a write, so that sessions end and are told to have ended when it is full.
pub(super) static REMOVE: Stored = Stored::new(&[
    PUBLISH,
    r"
local function leave(value)
  if string.byte(value, 1) ~= 1 then return end
  local ends, at = string.sub(value, 18, 25) .. ARGV[4], 27
  for _ = 1, string.byte(value, 26) or 0 do
    local high, low = string.byte(value, at, at + 1)
    if not low then return end
    local length = high % 128 * 256 + low
    local head, name = string.sub(value, at, at + 1), string.sub(value, at + 2, at + 1 + length)
    local key, begins = 'i' .. string.sub(name, 1, 2), string.sub(name, 3)
    if head ~= '\128\16' then key, begins = 'I' .. string.sub(name, 1, 2), head .. name end
    redis.call('ZREM', ARGV[3] .. key, begins .. ends)
    at = at + 2 + length
  end
end
local value = redis.call('GET', KEYS[1])
if not value then return false end
redis.call('DEL', KEYS[1])
if KEYS[2] then leave(value) end
publish(KEYS[2], ARGV[1], ARGV[2])
return value
",
]);

/// KEYS: the set an index is in. ARGV: what its entries begin with, the entry to go on after or nothing, how many, prefix
/// of keys. Gives the ends of the newest entries whose records are there, each with its record.
///
/// Strings are compared byte by byte: Lua's own comparison goes by the server's locale.
pub(super) static LIST: Stored = Stored::new(&[r"
local function newer(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
local begins, after, limit, prefix = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local time = redis.call('TIME')
local now = string.format('(%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local entries = {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], now, '+inf', 'BYSCORE')) do
  if string.sub(member, 1, #begins) == begins then entries[#entries + 1] = string.sub(member, #begins + 1) end
end
local found = {}
while #found < 2 * limit do
  local page = {}
  for i = #entries, 1, -1 do
    local entry = entries[i]
    if (after == '' or newer(after, entry)) and (#page < limit or newer(entry, page[limit])) then
      local at = #page + 1
      while at > 1 and newer(entry, page[at - 1]) do at = at - 1 end
      table.insert(page, at, entry)
      page[limit + 1] = nil
    end
  end
  if #page == 0 then break end
  local keys = {}
  for i, entry in ipairs(page) do keys[i] = prefix .. string.sub(entry, 9) end
  for i, value in ipairs(redis.call('MGET', unpack(keys))) do
    if value and #found < 2 * limit then
      found[#found + 1] = page[i]
      found[#found + 1] = value
    end
  end
  if #page < limit then break end
  after = page[limit]
end
return found
"]);

/// KEYS: the set of an index. ARGV: expiry, index member. For clusters; an entry's expiry is only ever moved on.
pub(super) static ENTER: Stored = Stored::new(&[ENTER_INDEX, "enter(KEYS[1], 'GT', ARGV[1], ARGV[2])"]);

/// The holder's name in the value of a lease, which is "fence:holder"; nothing if there is no lease.
const HOLDER_OF: &str = r"
local function holder_of(key)
  local held = redis.call('GET', key)
  return held and (string.match(held, '^%d*:(.*)$') or held)
end
";

/// ARGV: holder, milliseconds. Gives the fence, or nothing if another one holds the lease.
pub(super) static ACQUIRE: Stored = Stored::new(&[
    HOLDER_OF,
    r"
local holder = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return false end
local time = redis.call('TIME')
local fence = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], fence .. ':' .. ARGV[1], 'PX', ARGV[2])
return fence
",
]);

/// ARGV: holder, milliseconds.
pub(super) static RENEW: Stored = Stored::new(&[
    HOLDER_OF,
    r"
if holder_of(KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
",
]);

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

/// ARGV: value as it was, value as it is to be. Gives 2, or 1 if it is another by now, or 0 if it is gone.
pub(super) static EXCHANGE: Stored = Stored::new(&[r"
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
if value ~= ARGV[1] then return 1 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 2
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
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
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

    /// Runs it once: whether a write whose answer was lost has been done cannot be known here.
    pub(super) async fn run<T: FromRedisValue>(&self, connections: &Connections) -> Result<T, StoreError> {
        let (text, script) = self.script.made();
        let mut answer = connections
            .once(&self.command("EVALSHA", script.get_hash()))
            .await;
        if is_unknown(&answer) {
            answer = connections.once(&self.command("EVAL", text)).await;
        }
        answer.map_err(unavailable)
    }

    /// Runs one that only reads, and so may be repeated.
    pub(super) async fn read<T: FromRedisValue>(&self, connections: &Connections) -> Result<T, StoreError> {
        let (text, script) = self.script.made();
        let mut answer = connections
            .read(&self.command("EVALSHA", script.get_hash()))
            .await;
        if is_unknown(&answer) {
            answer = connections.read(&self.command("EVAL", text)).await;
        }
        answer.map_err(unavailable)
    }
}

/// Whether the server has forgotten the script, as it does when it restarts.
fn is_unknown<T>(answer: &RedisResult<T>) -> bool {
    let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
    answer.as_ref().is_err_and(|error| error.kind() == unknown)
}
