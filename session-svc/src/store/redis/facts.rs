//! What servers say of themselves, judged: does this keep sessions, also over a restart?

mod memory;
mod replication;
mod restart;

use super::info::ServerInfo;
use super::servers::ServerAnswers;
use crate::store::fact::{Assessment, Fact};

pub(super) use self::replication::of_sentinel;

/// Slots of a cluster.
const SLOTS: &str = "16384";

const EVICTION: &str = "set maxmemory-policy noeviction: evicting a session signs somebody out";
const SLOTS_MISSING: &str =
    "sessions of the slots that are not served cannot be read: bring their nodes back";

/// How the servers stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deployment {
    /// One, whoever else follows it.
    Single,
    /// A master that is replaced by one of its replicas.
    Sentinel,
    /// Masters that are replaced by their replicas.
    Cluster,
}

/// How a server stands; `server_memory` is how many bytes it may take, where that is less than its machine has.
pub(super) fn of_server(
    answers: &ServerAnswers,
    deployment: Deployment,
    server_memory: Option<u64>,
) -> Vec<Fact> {
    let info = &answers.info;
    let mut facts = vec![version(info)];
    facts.extend(replication::judged(info, deployment));
    facts.push(eviction(
        info.said("maxmemory_policy").unwrap_or_default(),
        info.said("maxmemory").unwrap_or("0"),
    ));
    facts.extend(restart::judged(answers));
    facts.extend(memory::judged(info, server_memory));
    if let Some(evicted) = info.said("evicted_keys").filter(|count| *count != "0") {
        facts.push(Fact::fine("evicted_keys", evicted).standing(Assessment::Warning(EVICTION)));
    }
    named(facts, &answers.name)
}

/// What a restart of a server would lose.
pub(super) fn of_restart(answers: &ServerAnswers) -> Vec<Fact> {
    named(restart::judged(answers), &answers.name)
}

fn named(mut facts: Vec<Fact>, server: &str) -> Vec<Fact> {
    if !server.is_empty() {
        for fact in &mut facts {
            fact.value = format!("{} on {server}", fact.value);
        }
    }
    facts
}

fn version(info: &ServerInfo) -> Fact {
    let valkey = info
        .said("valkey_version")
        .map(|version| format!("valkey {version}"));
    let redis = || {
        info.said("redis_version")
            .map(|version| format!("redis {version}"))
    };
    Fact::fine("server_version", valkey.or_else(redis).unwrap_or_default())
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

/// What CLUSTER INFO says.
pub(super) fn of_cluster(about: &str) -> Vec<Fact> {
    let info = ServerInfo::new(about.to_owned());
    let slots = info.said("cluster_slots_ok").unwrap_or("0");
    let state = info.said("cluster_state").unwrap_or_default();
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
    use super::super::replay::DefaultUser;
    use super::*;

    pub(super) fn answers(about: &str) -> ServerAnswers {
        ServerAnswers {
            name: String::new(),
            info: ServerInfo::new(about.to_owned()),
            save: None,
            appendfsync: None,
            default_user: DefaultUser::Unconcerned,
        }
    }

    pub(super) fn standing(facts: &[Fact], name: &str) -> Assessment {
        facts
            .iter()
            .find(|fact| fact.name == name)
            .unwrap()
            .standing
            .clone()
    }

    #[test]
    fn eviction_is_a_problem_once_memory_is_limited() {
        let judged = |policy: &str, limit: &str| {
            let about = format!("role:master\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n");
            standing(
                &of_server(&answers(&about), Deployment::Single, None),
                "maxmemory_policy",
            )
        };
        assert_eq!(judged("noeviction", "1000"), Assessment::Fine);
        assert!(matches!(judged("allkeys-lru", "0"), Assessment::Warning(_)));
        assert!(matches!(judged("allkeys-lru", "1000"), Assessment::Problem(_)));
    }

    #[test]
    fn what_a_server_says_of_itself_names_it() {
        let mut replica = answers("role:slave\r\nvalkey_version:8.1.0\r\n");
        replica.name = "h:1".to_owned();
        let facts = of_server(&replica, Deployment::Sentinel, None);
        assert_eq!(facts[0].value, "valkey 8.1.0 on h:1");
        assert!(facts.iter().all(|fact| fact.value.ends_with(" on h:1")));
    }

    #[test]
    fn a_cluster_with_holes_is_a_problem() {
        let holes = of_cluster("cluster_state:ok\r\ncluster_slots_ok:10922\r\n");
        assert!(matches!(
            standing(&holes, "cluster_slots"),
            Assessment::Problem(_)
        ));
        assert_eq!(standing(&holes, "cluster_state"), Assessment::Fine);
    }
}
