//! What the servers that take writes say of themselves, judged: do they keep the sessions they are given?
//!
//! Masters alone answer, over the store's own connection. INFO is the only right that this needs.

use std::collections::BTreeMap;

use super::{RedisStore, unavailable};
use crate::store::StoreError;
use crate::store::fact::{Assessment, Fact};

/// Less room than this part of `maxmemory` is worth a look: sign-ins are refused when there is none.
const ROOM_PART: u64 = 5;

const NOT_MASTER: &str = "this server takes no writes: point SESSION_STORE at the master";
const REPLICAS_NOT_NEEDED: &str = "a master that lost its replicas goes on taking writes that a failover undoes: set min-replicas-to-write 1 and min-replicas-max-lag 3";
const NO_REPLICA: &str =
    "no server can take the place of this master, and its sessions are lost with it: give it two replicas";
const EVICTION: &str = "set maxmemory-policy noeviction: evicting a session signs its user out";
const NOT_APPENDED: &str =
    "a restart of this server loses sessions, all of them without snapshots: set appendonly yes";
const NO_LIMIT: &str = "set maxmemory, to four sevenths of what the server may take: full, it then refuses new sessions, where without a limit the system kills it";
const LITTLE_ROOM: &str = "less than a fifth of maxmemory is left, and without room no session begins: raise maxmemory, and the server's memory with it";

impl RedisStore {
    /// Asks the only server, or every master of a cluster.
    pub(super) async fn ask_facts(&self) -> Result<Vec<Fact>, StoreError> {
        let question = redis::cmd("INFO");
        let servers: BTreeMap<String, String> = if self.shared.scattered {
            self.connection.read(&question).await.map_err(unavailable)?
        } else {
            let info = self.connection.read(&question).await.map_err(unavailable)?;
            BTreeMap::from([(String::new(), info)])
        };
        let judged = servers.iter().map(|(name, info)| {
            let mut facts = judge(&ServerInfo(info), self.shared.needs_replicas);
            if !name.is_empty() {
                for fact in &mut facts {
                    fact.value = format!("{} on {name}", fact.value);
                }
            }
            facts
        });
        Ok(judged.flatten().collect())
    }
}

/// The answer to INFO: lines of `name:value`.
struct ServerInfo<'a>(&'a str);

impl ServerInfo<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| {
            let (known, value) = line.trim_end().split_once(':')?;
            (known == name).then_some(value)
        })
    }

    fn number(&self, name: &str) -> u64 {
        self.value(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}

fn judge(info: &ServerInfo<'_>, needs_replicas: bool) -> Vec<Fact> {
    let (engine, version) = match info.value("valkey_version") {
        Some(version) => ("valkey", version),
        None => ("redis", info.value("redis_version").unwrap_or_default()),
    };
    let role = info.value("role").unwrap_or_default();
    let appends = info.value("aof_enabled") == Some("1");
    let persistence = if appends { "appendonly" } else { "not appended" };
    let (used, limit) = (info.number("used_memory"), info.number("maxmemory"));
    let mut facts = vec![
        Fact::new("server_version", format!("{engine} {version}"), Assessment::Fine),
        Fact::new(
            "role",
            role,
            fine_if(role == "master", Assessment::Problem(NOT_MASTER)),
        ),
        replicas(info, needs_replicas),
        eviction(info.value("maxmemory_policy").unwrap_or_default(), limit),
        Fact::new(
            "persistence",
            persistence,
            fine_if(appends, Assessment::Warning(NOT_APPENDED)),
        ),
        Fact::new("used_memory_bytes", used.to_string(), Assessment::Fine),
        Fact::new(
            "maxmemory_bytes",
            limit.to_string(),
            fine_if(limit > 0, Assessment::Warning(NO_LIMIT)),
        ),
    ];
    if limit > 0 {
        // The buffers of replicas and of the append-only file do not count.
        let counted = used.saturating_sub(info.number("mem_not_counted_for_evict"));
        let left = limit.saturating_sub(counted);
        let has_room = left >= limit / ROOM_PART;
        let standing = fine_if(has_room, Assessment::Warning(LITTLE_ROOM));
        facts.push(Fact::new("memory_left_bytes", left.to_string(), standing));
    }
    facts
}

fn fine_if(is_fine: bool, otherwise: Assessment) -> Assessment {
    if is_fine { Assessment::Fine } else { otherwise }
}

/// The server says how many of its replicas are good only if it refuses writes without them.
fn replicas(info: &ServerInfo<'_>, needs_replicas: bool) -> Fact {
    let connected = info.value("connected_slaves").unwrap_or("0");
    let standing = match (connected, needs_replicas) {
        ("0", false) => Assessment::Fine,
        ("0", true) => Assessment::Warning(NO_REPLICA),
        _ if info.value("min_slaves_good_slaves").is_none() => Assessment::Warning(REPLICAS_NOT_NEEDED),
        _ => Assessment::Fine,
    };
    Fact::new("connected_replicas", connected, standing)
}

fn eviction(policy: &str, limit: u64) -> Fact {
    let standing = match (policy, limit) {
        ("noeviction", _) => Assessment::Fine,
        // Without a limit the server evicts nothing until an operator sets one.
        (_, 0) => Assessment::Warning(EVICTION),
        _ => Assessment::Problem(EVICTION),
    };
    Fact::new("maxmemory_policy", policy, standing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(about: &str, needs_replicas: bool, name: &str) -> Assessment {
        let about = about.replace(' ', "\r\n");
        let facts = judge(&ServerInfo(&about), needs_replicas);
        facts.into_iter().find(|fact| fact.name == name).unwrap().standing
    }

    #[test]
    fn eviction_is_a_problem_once_memory_is_limited() {
        let judged = |policy: &str, limit: &str| {
            let about = format!("role:master maxmemory:{limit} maxmemory_policy:{policy}");
            standing(&about, false, "maxmemory_policy")
        };
        assert_eq!(judged("noeviction", "1000"), Assessment::Fine);
        assert_eq!(judged("allkeys-lru", "0"), Assessment::Warning(EVICTION));
        assert_eq!(judged("allkeys-lru", "1000"), Assessment::Problem(EVICTION));
    }

    #[test]
    fn a_master_that_writes_without_replicas_is_warned_of() {
        let judged = |about: &str, needs| standing(about, needs, "connected_replicas");
        assert_eq!(judged("connected_slaves:0", false), Assessment::Fine);
        assert_eq!(
            judged("connected_slaves:0", true),
            Assessment::Warning(NO_REPLICA)
        );
        assert_eq!(
            judged("connected_slaves:2", false),
            Assessment::Warning(REPLICAS_NOT_NEEDED)
        );
        assert_eq!(
            judged("connected_slaves:1 min_slaves_good_slaves:1", true),
            Assessment::Fine
        );
    }

    #[test]
    fn a_replica_is_a_problem_and_a_server_that_appends_nothing_a_warning() {
        assert_eq!(standing("role:master", false, "role"), Assessment::Fine);
        assert_eq!(
            standing("role:slave", false, "role"),
            Assessment::Problem(NOT_MASTER)
        );
        assert_eq!(standing("aof_enabled:1", false, "persistence"), Assessment::Fine);
        assert_eq!(
            standing("aof_enabled:0", false, "persistence"),
            Assessment::Warning(NOT_APPENDED)
        );
    }

    #[test]
    fn little_room_is_warned_of_and_buffers_of_replicas_take_none() {
        let left = |used: u64, apart: u64| {
            let about = format!("used_memory:{used} mem_not_counted_for_evict:{apart} maxmemory:1000");
            standing(&about, false, "memory_left_bytes")
        };
        assert_eq!(left(800, 0), Assessment::Fine);
        assert_eq!(left(801, 0), Assessment::Warning(LITTLE_ROOM));
        assert_eq!(left(900, 100), Assessment::Fine);
        let unlimited = standing("used_memory:1 maxmemory:0", false, "maxmemory_bytes");
        assert_eq!(unlimited, Assessment::Warning(NO_LIMIT));
    }
}
