//! What servers say of themselves, judged: does this keep sessions?

use crate::store::inspect::{Assessment, Fact};

/// Slots of a cluster.
const SLOTS: &str = "16384";

const EVICTION: &str = "set maxmemory-policy noeviction: evicting a session signs somebody out";
const NO_PERSISTENCE: &str =
    "a restart of this server loses every session: set appendonly yes, or save points";
const ONLY_SNAPSHOTS: &str =
    "a crash loses the sessions since the last snapshot: appendonly yes loses a second";
const UNKNOWN_PERSISTENCE: &str =
    "appendonly is off, and whether snapshots are taken may not be asked: allow +config|get to know";
const SLOTS_MISSING: &str =
    "sessions of the slots that are not served cannot be read: bring their nodes back";
const NOT_MASTER: &str = "this server takes no writes: point SESSION_STORE at the master";
const REPLICAS_NOT_NEEDED: &str = "a master that lost its replicas goes on taking writes that a failover undoes: set min-replicas-to-write 1 and min-replicas-max-lag 3";

/// What INFO says; `saves` is the setting of snapshots if it may be read.
pub(super) fn of_server(node: &str, about: &str, saves: Option<&str>) -> Vec<Fact> {
    let said = |name: &str| {
        about.lines().find_map(|line| {
            let (known, value) = line.trim_end().split_once(':')?;
            (known == name).then_some(value)
        })
    };
    let valkey = said("valkey_version").map(|version| format!("valkey {version}"));
    let version = valkey.or_else(|| said("redis_version").map(|version| format!("redis {version}")));
    let mut facts = vec![
        Fact::fine("server_version", version.unwrap_or_default()),
        role(said("role").unwrap_or_default()),
        eviction(
            said("maxmemory_policy").unwrap_or_default(),
            said("maxmemory").unwrap_or("0"),
        ),
        persistence(said("aof_enabled") == Some("1"), saves),
        replicas(
            said("connected_slaves").unwrap_or("0"),
            said("min_slaves_good_slaves"),
        ),
        Fact::fine("used_memory_bytes", said("used_memory").unwrap_or_default()),
    ];
    if let Some(evicted) = said("evicted_keys").filter(|count| *count != "0") {
        facts.push(Fact::fine("evicted_keys", evicted).standing(Assessment::Warning(EVICTION)));
    }
    if !node.is_empty() {
        facts
            .iter_mut()
            .for_each(|fact| fact.value = format!("{} on {node}", fact.value));
    }
    facts
}

fn role(role: &str) -> Fact {
    let standing = if role == "master" {
        Assessment::Fine
    } else {
        Assessment::Problem(NOT_MASTER)
    };
    Fact::fine("role", role).standing(standing)
}

/// The server says how many of its replicas are good only if it refuses writes without them.
fn replicas(connected: &str, good: Option<&str>) -> Fact {
    let standing = if connected == "0" || good.is_some() {
        Assessment::Fine
    } else {
        Assessment::Warning(REPLICAS_NOT_NEEDED)
    };
    Fact::fine("connected_replicas", connected).standing(standing)
}

fn eviction(policy: &str, limit: &str) -> Fact {
    let standing = match (policy, limit) {
        ("noeviction", _) => Assessment::Fine,
        // Without a limit nothing is evicted, until somebody sets one.
        (_, "0") => Assessment::Warning(EVICTION),
        _ => Assessment::Problem(EVICTION),
    };
    Fact::fine("maxmemory_policy", policy).standing(standing)
}

fn persistence(appending: bool, saves: Option<&str>) -> Fact {
    let (value, standing) = match (appending, saves) {
        (true, _) => ("appendonly", Assessment::Fine),
        (false, None) => ("unknown", Assessment::Warning(UNKNOWN_PERSISTENCE)),
        (false, Some("")) => ("none", Assessment::Warning(NO_PERSISTENCE)),
        (false, Some(_)) => ("snapshots", Assessment::Warning(ONLY_SNAPSHOTS)),
    };
    Fact::fine("persistence", value).standing(standing)
}

/// What CLUSTER INFO says.
pub(super) fn of_cluster(about: &str) -> Vec<Fact> {
    let said = |name: &str| {
        about.lines().find_map(|line| {
            let (known, value) = line.trim_end().split_once(':')?;
            (known == name).then_some(value)
        })
    };
    let slots = said("cluster_slots_ok").unwrap_or("0");
    let state = said("cluster_state").unwrap_or_default();
    let judged = |fine: bool| {
        if fine {
            Assessment::Fine
        } else {
            Assessment::Problem(SLOTS_MISSING)
        }
    };
    vec![
        Fact::fine("cluster_state", state).standing(judged(state == "ok")),
        Fact::fine("cluster_slots", format!("{slots} of {SLOTS}")).standing(judged(slots == SLOTS)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(facts: &[Fact], name: &str) -> Assessment {
        facts
            .iter()
            .find(|fact| fact.name == name)
            .unwrap()
            .standing
            .clone()
    }

    fn reported(policy: &str, limit: &str, appending: &str, saves: Option<&str>) -> Vec<Fact> {
        let about = format!(
            "# Server\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\naof_enabled:{appending}\r\n"
        );
        of_server("", &about, saves)
    }

    #[test]
    fn eviction_is_a_problem_once_memory_is_limited() {
        let judged = |policy, limit| standing(&reported(policy, limit, "1", None), "maxmemory_policy");
        assert_eq!(judged("noeviction", "1000"), Assessment::Fine);
        assert!(matches!(judged("allkeys-lru", "0"), Assessment::Warning(_)));
        assert!(matches!(judged("allkeys-lru", "1000"), Assessment::Problem(_)));
    }

    #[test]
    fn what_a_restart_would_lose_is_warned_of() {
        let judged =
            |appending, saves| standing(&reported("noeviction", "0", appending, saves), "persistence");
        assert_eq!(judged("1", Some("")), Assessment::Fine);
        for saves in [None, Some(""), Some("3600 1")] {
            assert!(matches!(judged("0", saves), Assessment::Warning(_)), "{saves:?}");
        }
    }

    #[test]
    fn a_master_whose_replicas_are_not_needed_for_a_write_is_warned_of() {
        let judged = |about: &str| standing(&of_server("", about, None), "connected_replicas");
        assert_eq!(judged("role:master\r\nconnected_slaves:0\r\n"), Assessment::Fine);
        assert_eq!(
            judged("connected_slaves:1\r\nmin_slaves_good_slaves:1\r\n"),
            Assessment::Fine
        );
        assert!(matches!(
            judged("role:master\r\nconnected_slaves:2\r\n"),
            Assessment::Warning(_)
        ));
    }

    #[test]
    fn a_replica_and_a_cluster_with_holes_are_problems() {
        let replica = of_server("h:1", "role:slave\r\nvalkey_version:8.1.0\r\n", None);
        assert!(matches!(standing(&replica, "role"), Assessment::Problem(_)));
        assert_eq!(replica[0].value, "valkey 8.1.0 on h:1");
        let holes = of_cluster("cluster_state:ok\r\ncluster_slots_ok:10922\r\n");
        assert!(matches!(
            standing(&holes, "cluster_slots"),
            Assessment::Problem(_)
        ));
        assert_eq!(standing(&holes, "cluster_state"), Assessment::Fine);
    }
}
