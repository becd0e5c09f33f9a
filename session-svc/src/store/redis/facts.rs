//! Checks from the masters' own reports whether they keep the sessions.
//!
//! Only masters answer, over the store's own connection. INFO is the only right needed.

use std::collections::BTreeMap;

use chassis::findings::{Check, Finding};
use redis::InfoDict;

use super::RedisStore;
use super::answers::unavailable;
use crate::store::StoreError;

/// Free memory below 1/`ROOM_PART` of `maxmemory` is a warning. Without free memory, sign-ins fail.
const ROOM_PART: u64 = 5;

const NOT_MASTER: &str = "this server takes no writes: point SESSION_STORE at the master";
const REPLICAS_NOT_NEEDED: &str = "a master that lost its replicas goes on taking writes that a failover undoes: set min-replicas-to-write 1 and min-replicas-max-lag 3";
const NO_REPLICA: &str =
    "no server can take the place of this master, and its sessions are lost with it: give it two replicas";
const EVICTION: &str = "set maxmemory-policy noeviction: evicting a session signs its user out";
const NOT_APPENDED: &str =
    "a restart of this server loses sessions (without snapshots: all of them): set appendonly yes";
const NO_LIMIT: &str = "set maxmemory to four sevenths of the memory that the server may use: a full server then refuses new sessions; without a limit, the system kills it";
const LITTLE_ROOM: &str = "less than a fifth of maxmemory is left, and no session can begin without room: raise maxmemory, and the server's memory with it";

impl RedisStore {
    /// Asks the only server, or every master of a cluster, with INFO.
    pub(super) async fn ask_facts(&self) -> Result<Vec<Check>, StoreError> {
        let question = redis::cmd("INFO");
        let servers: BTreeMap<String, InfoDict> = if self.shared.scattered {
            self.connection.read(&question).await.map_err(unavailable)?
        } else {
            let info = self.connection.read(&question).await.map_err(unavailable)?;
            BTreeMap::from([(String::new(), info)])
        };
        let judged = servers.iter().flat_map(|(name, info)| {
            let mut checks = judge(info, self.shared.needs_replicas);
            if !name.is_empty() {
                for (_, finding) in &mut checks {
                    finding.found = format!("{} on {name}", finding.found);
                }
            }
            checks
        });
        Ok(judged.collect())
    }
}

fn judge(info: &InfoDict, needs_replicas: bool) -> Vec<Check> {
    let text = |name| info.get::<String>(name).unwrap_or_default();
    let number = |name| info.get::<u64>(name).unwrap_or_default();
    let version = match info.get::<String>("valkey_version") {
        Some(version) => format!("valkey {version}"),
        None => format!("redis {}", text("redis_version")),
    };
    let (role, limit) = (text("role"), number("maxmemory"));
    let mut checks = vec![
        ("server_version", Finding::fits(version)),
        (
            "role",
            match role.as_str() {
                "master" => Finding::fits(role),
                _ => Finding::problem(role, NOT_MASTER),
            },
        ),
        ("connected_replicas", replicas(info, needs_replicas)),
        ("maxmemory_policy", eviction(text("maxmemory_policy"), limit)),
        (
            "persistence",
            match number("aof_enabled") {
                1 => Finding::fits("appendonly"),
                _ => Finding::warning("not appended", NOT_APPENDED),
            },
        ),
    ];
    if limit == 0 {
        checks.push(("maxmemory_bytes", Finding::warning("0", NO_LIMIT)));
        return checks;
    }
    checks.push(("maxmemory_bytes", Finding::fits(limit.to_string())));
    // The buffers of replicas and of the append-only file do not count.
    let counted = number("used_memory").saturating_sub(number("mem_not_counted_for_evict"));
    let left = limit.saturating_sub(counted);
    let room = match left >= limit / ROOM_PART {
        true => Finding::fits(left.to_string()),
        false => Finding::warning(left.to_string(), LITTLE_ROOM),
    };
    checks.push(("memory_left_bytes", room));
    checks
}

/// The server reports its good replicas only if it refuses writes without them.
fn replicas(info: &InfoDict, needs_replicas: bool) -> Finding {
    let connected: String = info.get("connected_slaves").unwrap_or("0".to_owned());
    match connected.as_str() {
        "0" if needs_replicas => Finding::warning(connected, NO_REPLICA),
        "0" => Finding::fits(connected),
        _ if !info.contains_key(&"min_slaves_good_slaves") => {
            Finding::warning(connected, REPLICAS_NOT_NEEDED)
        }
        _ => Finding::fits(connected),
    }
}

fn eviction(policy: String, limit: u64) -> Finding {
    match (policy.as_str(), limit) {
        ("noeviction", _) => Finding::fits(policy),
        // Without a limit the server evicts nothing until an operator sets one.
        (_, 0) => Finding::warning(policy, EVICTION),
        _ => Finding::problem(policy, EVICTION),
    }
}

#[cfg(test)]
mod tests {
    use chassis::findings::CheckResult;

    use super::*;

    const FITS: (CheckResult, Option<&str>) = (CheckResult::Fits, None);

    /// The verdict on a fact, and its advice.
    fn standing(about: &str, needs_replicas: bool, name: &str) -> (CheckResult, Option<&'static str>) {
        let about = about.replace(' ', "\r\n");
        let checks = judge(&InfoDict::new(&about), needs_replicas);
        let (_, found) = checks.into_iter().find(|(id, _)| *id == name).unwrap();
        let known = [
            NOT_MASTER,
            REPLICAS_NOT_NEEDED,
            NO_REPLICA,
            EVICTION,
            NOT_APPENDED,
            NO_LIMIT,
            LITTLE_ROOM,
        ];
        let advice = found.advice.as_deref();
        (
            found.verdict,
            known.into_iter().find(|known| advice == Some(known)),
        )
    }

    #[test]
    fn eviction_is_a_problem_once_memory_is_limited() {
        let judged = |policy: &str, limit: &str| {
            let about = format!("role:master maxmemory:{limit} maxmemory_policy:{policy}");
            standing(&about, false, "maxmemory_policy")
        };
        assert_eq!(judged("noeviction", "1000"), FITS);
        assert_eq!(judged("allkeys-lru", "0"), (CheckResult::Warning, Some(EVICTION)));
        assert_eq!(
            judged("allkeys-lru", "1000"),
            (CheckResult::Problem, Some(EVICTION))
        );
    }

    #[test]
    fn a_master_that_writes_without_replicas_is_warned_of() {
        let judged = |about: &str, needs| standing(about, needs, "connected_replicas");
        assert_eq!(judged("connected_slaves:0", false), FITS);
        assert_eq!(
            judged("connected_slaves:0", true),
            (CheckResult::Warning, Some(NO_REPLICA))
        );
        assert_eq!(
            judged("connected_slaves:2", false),
            (CheckResult::Warning, Some(REPLICAS_NOT_NEEDED))
        );
        assert_eq!(judged("connected_slaves:1 min_slaves_good_slaves:1", true), FITS);
    }

    #[test]
    fn a_replica_is_a_problem_and_a_server_that_appends_nothing_a_warning() {
        assert_eq!(standing("role:master", false, "role"), FITS);
        assert_eq!(
            standing("role:slave", false, "role"),
            (CheckResult::Problem, Some(NOT_MASTER))
        );
        assert_eq!(standing("aof_enabled:1", false, "persistence"), FITS);
        assert_eq!(
            standing("aof_enabled:0", false, "persistence"),
            (CheckResult::Warning, Some(NOT_APPENDED))
        );
    }

    #[test]
    fn little_room_is_warned_of_and_buffers_of_replicas_take_none() {
        let left = |used: u64, apart: u64| {
            let about = format!("used_memory:{used} mem_not_counted_for_evict:{apart} maxmemory:1000");
            standing(&about, false, "memory_left_bytes")
        };
        assert_eq!(left(800, 0), FITS);
        assert_eq!(left(801, 0), (CheckResult::Warning, Some(LITTLE_ROOM)));
        assert_eq!(left(900, 100), FITS);
        let unlimited = standing("used_memory:1 maxmemory:0", false, "maxmemory_bytes");
        assert_eq!(unlimited, (CheckResult::Warning, Some(NO_LIMIT)));
    }
}
