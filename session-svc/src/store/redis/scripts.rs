//! What is done on the server in one step.
//!
//! `KEYS` of a write are the record's, the events' and two sets of each index, by expiry and by creation; in a cluster the record's
//! alone, and the names of streams that may be on the same node stand where the members of indexes stand elsewhere (Redis lets a
//! script use a key it does not declare, on its own node). Commands are those the documented access list grants.
//! Values are compared as bytes: a record's version stands at the offset `codec` says.

use std::sync::OnceLock;

use redis::{self, Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, ToRedisArgs};

use crate::store::StoreError;

use super::pool::WorkerConnection;
use super::unavailable;

/// Enters a member into an index, trims what is past, a bounded number at a time, and lets the index expire with its last entry.
/// `mode` is a condition of ZADD or empty. Gives what was trimmed, the last expiry, and what is to be ordered by creation as well: nothing
/// in a small set, which is read at once; all of it when it has just become a large one; from then on each that is entered.
const ENTER_INDEX: &str = r"
local small = 128
local function enter(key, mode, expires, member)
  local is_new = (mode == '' and redis.call('ZADD', key, expires, member) or redis.call('ZADD', key, mode, expires, member)) == 1
  local time = redis.call('TIME')
  local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  local past = redis.call('ZRANGE', key, '-inf', now, 'BYSCORE', 'LIMIT', 0, 100)
  if #past > 0 then redis.call('ZREM', key, unpack(past)) end
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  last = last and string.format('%.0f', last)
  if last then redis.call('PEXPIREAT', key, last) end
  local beyond = redis.call('ZRANGE', key, small, small + 1)
  if #beyond == 0 then return past, last, {} end
  if #beyond == 1 and is_new then return past, last, redis.call('ZRANGE', key, 0, -1) end
  return past, last, {member}
end
";

/// Does the same to the set that orders an index by creation.
const ORDER_INDEX: &str = r"
local function order(key, members, past, last)
  for _, member in ipairs(members) do redis.call('ZADD', key, 0, member) end
  if #past > 0 then redis.call('ZREM', key, unpack(past)) end
  if last and #members > 0 then redis.call('PEXPIREAT', key, last) end
end
";

/// Enters a record into its indexes, whose sets are `KEYS` from the third on; members begin at `ARGV[at]`.
const ENTER_ALL: &str = r"
local function enter_all(expires, at)
  for i = 3, #KEYS, 2 do
    local past, last, ordered = enter(KEYS[i], '', expires, ARGV[at + (i - 3) / 2])
    order(KEYS[i + 1], ordered, past, last)
  end
end
";

/// All entries of a list in a small set, without what they begin with; false if the set is a large one.
const WHOLE_LIST: &str = r"
local function whole_list(key, begins)
  local all, own = redis.call('ZRANGE', key, 0, 128), {}
  if #all > 128 then return false end
  for _, entry in ipairs(all) do
    if string.sub(entry, 1, #begins) == begins then own[#own + 1] = string.sub(entry, #begins + 1) end
  end
  return own
end
";

/// Publishes in the stream `key`; in a cluster, where there is none, in the first of the streams from `ARGV[at]` on that this node
/// has. Gives whether it did.
const PUBLISH: &str = r"
local function publish(key, kept, event, at)
  if key then redis.call('XADD', key, 'MAXLEN', '~', kept, '*', 'e', event) return true end
  for i = at, #ARGV do
    local added = redis.pcall('XADD', ARGV[i], 'MAXLEN', '~', kept, '*', 'e', event)
    if type(added) == 'string' then return true end
  end
  return false
end
";

/// ARGV: value, expiry, events kept, event, the key that must not be there or nothing, index members. Gives 1, or 0 if the name is
/// taken, or 2 if that key is there, or 3 if it is done and its event is yet to be published.
pub(super) static INSERT: Stored = Stored::new(
    "insert",
    &[
        ENTER_INDEX,
        ORDER_INDEX,
        ENTER_ALL,
        PUBLISH,
        r"
if ARGV[5] ~= '' and redis.call('EXISTS', ARGV[5]) == 1 then return 2 end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) then return 0 end
enter_all(ARGV[2], 6)
if not publish(KEYS[2], ARGV[3], ARGV[4], 6) then return 3 end
return 1
",
    ],
);

/// ARGV: value, expiry, events kept, event, expected version, whether there is an event, bytes of the value before its
/// payload, index members. Gives 2, or 1 if the version is another, or 0 if there is no such record, or 3 if it is done and its event is
/// yet to be published. Entries are written
/// only where expiry or indexes are others than before; one the record is not found by any more stays until it expires.
pub(super) static REPLACE: Stored = Stored::new(
    "replace",
    &[
        ENTER_INDEX,
        ORDER_INDEX,
        ENTER_ALL,
        PUBLISH,
        r"
local header = redis.call('GETRANGE', KEYS[1], 0, ARGV[7] - 1)
if header == '' then return 0 end
if string.sub(header, 2, 9) ~= ARGV[5] then return 1 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
if string.sub(header, 10) ~= string.sub(ARGV[1], 10, ARGV[7]) then enter_all(ARGV[2], 8) end
if ARGV[6] == '1' and not publish(KEYS[2], ARGV[3], ARGV[4], 8) then return 3 end
return 2
",
    ],
);

/// KEYS: the record's, and outside a cluster the events'. ARGV: events kept, event, prefix of keys, the record's
/// key without it, and in a cluster the streams. Gives the record that was there, and whether its event was published. Outside a cluster it reads from the record which indexes
/// it leaves; of a record it cannot read the entries are left to expiry. Removing comes first: a server that is out of memory refuses a
/// script at its first command that needs any, and none behind a write, so that sessions end and their endings are published when it is full.
pub(super) static REMOVE: Stored = Stored::new(
    "remove",
    &[
        PUBLISH,
        r"
local function leave(value)
  if string.byte(value, 1) ~= 1 then return end
  local ends, at = string.sub(value, 18, 25) .. ARGV[4], 27
  for _ = 1, string.byte(value, 26) or 0 do
    local high, low = string.byte(value, at, at + 1)
    if not low then return end
    local length = high % 128 * 256 + low
    local set, begins = string.sub(value, at + 2, at + 3), string.sub(value, at + 4, at + 1 + length)
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
    ],
);

/// KEYS: the sets of an index, by expiry and by creation. ARGV: what its entries begin with; the end of the entry to go on after
/// in the order of creation, or nothing; how many; prefix of keys; and to go on in the order of expiry the score and the member
/// after which, or nothing; how many members of that order to look at.
///
/// Gives 'o' and the end of an entry, or 'x' with a score and a member, to go on after, or '' at the end of all; then entries' ends,
/// each with its score if it was found in the order of expiry. Entries whose records are gone are taken out.
///
/// Strings are compared byte by byte: Lua's own comparison goes by the server's locale.
pub(super) static LIST: Stored = Stored::new(
    "list",
    &[
        WHOLE_LIST,
        r"
local begins, after, limit, prefix = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local score, member, looked_at = ARGV[5], ARGV[6], math.max(ARGV[7], 1)
local function is_behind(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
-- Of some entries those whose records are there; the others are taken out.
local function leading_on(entries)
  local records = {}
  for i, entry in ipairs(entries) do records[i] = prefix .. string.sub(entry, #begins + 9) end
  if #entries == 0 or redis.call('EXISTS', unpack(records)) == #entries then return entries end
  local there = {}
  for i, entry in ipairs(entries) do
    if redis.call('EXISTS', records[i]) == 1 then there[#there + 1] = entry
    else for _, key in ipairs(KEYS) do redis.pcall('ZREM', key, entry) end end
  end
  return there
end
local found, ordered = {}, nil
local function is_ordered(entry)
  if ordered then return ordered[entry] end
  return #redis.call('ZRANGE', KEYS[2], '[' .. entry, '[' .. entry, 'BYLEX') == 1
end
local function find(entries, scores)
  for _, entry in ipairs(leading_on(entries)) do
    found[#found + 1] = string.sub(entry, #begins + 1)
    found[#found + 1] = scores[entry] or ''
  end
end
local whole = score == '' and whole_list(KEYS[1], begins)
if whole then
  -- Newest first, which a small set is not kept in.
  table.sort(whole, is_behind)
  local page, at = {}, 1
  while whole[at] and after ~= '' and not is_behind(after, whole[at]) do at = at + 1 end
  for i = at, math.min(at + limit - 1, #whole) do page[#page + 1] = begins .. whole[i] end
  find(page, {})
  local next = whole[at + limit] and string.sub(page[#page], #begins + 1)
  return {next and 'o' or '', next or '', '', unpack(found)}
end
if score == '' then
  local from = begins .. (after == '' and string.rep('\255', 9) or after)
  local page = redis.call('ZRANGE', KEYS[2], '(' .. from, '[' .. begins, 'BYLEX', 'REV', 'LIMIT', 0, limit)
  find(page, {})
  if #page >= limit then return {'o', string.sub(page[#page], #begins + 1), '', unpack(found)} end
  limit, score = limit - #page, '-inf'
end
local members, at, count = {}, 1, looked_at
repeat
  members, at = redis.call('ZRANGE', KEYS[1], score, '+inf', 'BYSCORE', 'LIMIT', 0, count, 'WITHSCORES'), 1
  while members[at] and tonumber(members[at + 1]) == tonumber(score) and not is_behind(members[at], member) do at = at + 2 end
  -- As many may share a score: look further, or the list would never go on.
  local is_all = #members < 2 * count
  count = 2 * count
until members[at] or is_all
local is_last = #members < count
if not ordered then
  local from, past = '[' .. begins, '(' .. begins .. string.rep('\255', 9)
  if #redis.call('ZRANGE', KEYS[2], from, past, 'BYLEX', 'LIMIT', 0, 1) == 0 then ordered = {} end
end
local entries, scores = {}, {}
while members[at] and #entries < limit do
  local entry = members[at]
  score, member, at = members[at + 1], entry, at + 2
  if string.sub(entry, 1, #begins) == begins and not is_ordered(entry) then
    entries[#entries + 1], scores[entry] = entry, score
  end
end
find(entries, scores)
if members[at] then is_last = false end
return {is_last and '' or 'x', score, member, unpack(found)}
",
    ],
);

/// KEYS: the set of an index by expiry. ARGV: what its entries begin with. Gives the ends of all entries of a list in a small set;
/// nothing if it is a large one.
pub(super) static WHOLE: Stored = Stored::new("whole", &[WHOLE_LIST, "return whole_list(KEYS[1], ARGV[1])"]);

/// KEYS: the set of an index. ARGV: expiry, index member. For clusters; an entry's expiry is only ever moved on. Gives the last
/// expiry, how many were trimmed, these, and what is to be ordered.
pub(super) static ENTER: Stored = Stored::new(
    "enter",
    &[
        ENTER_INDEX,
        r"
local past, last, ordered = enter(KEYS[1], 'GT', ARGV[1], ARGV[2])
local answer = {last or '', tostring(#past), unpack(past)}
for _, member in ipairs(ordered) do answer[#answer + 1] = member end
return answer
",
    ],
);

/// KEYS: the set that orders an index. ARGV: what `ENTER` gave. For clusters.
pub(super) static ORDER: Stored = Stored::new(
    "order",
    &[
        ORDER_INDEX,
        "order(KEYS[1], {unpack(ARGV, 3 + ARGV[2])}, {unpack(ARGV, 3, 2 + ARGV[2])}, ARGV[1] ~= '' and ARGV[1])",
    ],
);

/// The holder's name in the value of a lease, which is "serial:holder"; nothing if there is no lease.
const HOLDER_OF: &str = r"
local function holder_of(key)
  local held = redis.call('GET', key)
  return held and (string.match(held, '^%d*:(.*)$') or held)
end
";

/// ARGV: holder, milliseconds. Gives the serial, or nothing if another one holds the lease.
pub(super) static ACQUIRE: Stored = Stored::new(
    "acquire",
    &[
        HOLDER_OF,
        r"
local holder = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return false end
local time = redis.call('TIME')
local serial = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], serial .. ':' .. ARGV[1], 'PX', ARGV[2])
return serial
",
    ],
);

/// ARGV: holder, milliseconds.
pub(super) static RENEW: Stored = Stored::new(
    "renew",
    &[
        HOLDER_OF,
        r"
if holder_of(KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
",
    ],
);

/// ARGV: "serial:holder".
pub(super) static RELEASE: Stored = Stored::new(
    "release",
    &[r"
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.status_reply('OK')
"],
);

/// ARGV: value, milliseconds. Gives what was there.
pub(super) static REMEMBER: Stored = Stored::new(
    "remember",
    &[r"
local value = redis.call('GET', KEYS[1])
if value then return value end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false
"],
);

/// A script the server keeps by its hash.
pub(super) struct Stored {
    name: &'static str,
    parts: &'static [&'static str],
    made: OnceLock<(String, Script)>,
}

impl Stored {
    const fn new(name: &'static str, parts: &'static [&'static str]) -> Self {
        Self {
            name,
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

    /// Runs it once: whether a write whose answer was lost has been done cannot be known here.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        connection: &WorkerConnection,
    ) -> Result<T, StoreError> {
        let (text, script) = self.script.made();
        let name = Some(self.script.name);
        let mut answer = connection
            .once_by(&self.command("EVALSHA", script.get_hash()), name)
            .await;
        if is_unknown(&answer) {
            answer = connection.once_by(&self.command("EVAL", text), name).await;
        }
        answer.map_err(unavailable)
    }

    /// Runs one that only reads, and so may be repeated.
    pub(super) async fn read<T: FromRedisValue>(
        &self,
        connection: &WorkerConnection,
    ) -> Result<T, StoreError> {
        let (text, script) = self.script.made();
        let name = Some(self.script.name);
        let mut answer = connection
            .read_by(&self.command("EVALSHA", script.get_hash()), name)
            .await;
        if is_unknown(&answer) {
            answer = connection.read_by(&self.command("EVAL", text), name).await;
        }
        answer.map_err(unavailable)
    }
}

/// Whether the server has forgotten the script, as it does when it restarts.
fn is_unknown<T>(answer: &RedisResult<T>) -> bool {
    let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
    answer.as_ref().is_err_and(|error| error.kind() == unknown)
}
