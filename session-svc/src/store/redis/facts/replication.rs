//! Replicas: is there one to take the master's place, does it have what the master has, and is the master held to that?

use super::super::info::{KnownReplica, ServerInfo};
use super::Deployment;
use crate::store::fact::{Assessment, Fact};

/// A replica that acknowledged nothing for so long is not counted by the settings the manual asks for (`min-replicas-max-lag`).
const SILENT_SECS: u64 = 3;

/// More than this is behind: about a second of writes of a busy installation.
const BEHIND_BYTES: u64 = 1 << 20;

const NOT_MASTER: &str = "this server takes no writes: point SESSION_STORE at the master";
const REPLICAS_NOT_NEEDED: &str = "a master that lost its replicas goes on taking writes that a failover undoes: set min-replicas-to-write 1 and min-replicas-max-lag 3";
const NO_REPLICA: &str =
    "nobody can take the place of this master: when it is lost, its sessions are; give it two replicas";
const ONE_REPLICA: &str = "after a failover the new master has none and refuses writes until the old one is back: give each master two replicas";
const BEHIND: &str =
    "what it lacks is lost in a failover to it: look at its log, its disk and the network between them";
const NOT_LINKED: &str = "it does not follow its master, and cannot take its place: look at masteruser, masterauth, TLS and the network between them";
const OTHER_SENTINELS: &str = "a majority is counted of the Sentinels in SESSION_STORE: name all there are, and reset those that know dead ones";

/// Judges what a server answered.
pub(super) fn judged(info: &ServerInfo, deployment: Deployment) -> Vec<Fact> {
    let role = Fact::fine("role", info.said("role").unwrap_or_default());
    if !info.is_master() && deployment != Deployment::Single {
        return vec![role, link(info)];
    }
    let standing = if info.is_master() {
        Assessment::Fine
    } else {
        Assessment::Problem(NOT_MASTER)
    };
    let mut facts = vec![role.standing(standing), replicas(info, deployment)];
    facts.extend(info.replicas().iter().map(lag));
    facts
}

/// The server says how many of its replicas are good only if it refuses writes without them.
fn replicas(info: &ServerInfo, deployment: Deployment) -> Fact {
    let connected = info.said("connected_slaves").unwrap_or("0");
    let standing = match (connected, deployment) {
        ("0", Deployment::Single) => Assessment::Fine,
        ("0", _) => Assessment::Warning(NO_REPLICA),
        _ if info.said("min_slaves_good_slaves").is_none() => Assessment::Warning(REPLICAS_NOT_NEEDED),
        ("1", Deployment::Sentinel | Deployment::Cluster) => Assessment::Warning(ONE_REPLICA),
        _ => Assessment::Fine,
    };
    Fact::fine("connected_replicas", connected).standing(standing)
}

/// How far a replica is behind its master.
fn lag(replica: &KnownReplica) -> Fact {
    let KnownReplica {
        host,
        port,
        is_online,
        behind_bytes,
        silent_secs,
    } = replica;
    let follows = *is_online && *behind_bytes < BEHIND_BYTES && *silent_secs < SILENT_SECS;
    let state = if *is_online { "" } else { "not in step, " };
    let value = format!("{state}{behind_bytes} bytes, {silent_secs} s at {host}:{port}");
    let standing = if follows {
        Assessment::Fine
    } else {
        Assessment::Warning(BEHIND)
    };
    Fact::fine("replica_lag", value).standing(standing)
}

/// Whether a replica follows its master.
fn link(info: &ServerInfo) -> Fact {
    let status = info.said("master_link_status").unwrap_or("unknown");
    let standing = if status == "up" {
        Assessment::Fine
    } else {
        Assessment::Warning(NOT_LINKED)
    };
    Fact::fine("link_to_master", status).standing(standing)
}

/// What a Sentinel knows of the others.
pub(in super::super) fn of_sentinel(name: &str, others: Option<usize>, configured: usize) -> Fact {
    let standing = if others.map(|others| others.saturating_add(1)) == Some(configured) {
        Assessment::Fine
    } else {
        Assessment::Warning(OTHER_SENTINELS)
    };
    let others = others.map_or_else(|| "an unknown number of".to_owned(), |others| others.to_string());
    let value = format!("knows {others} others; {configured} are configured on {name}");
    Fact::fine("sentinel", value).standing(standing)
}

#[cfg(test)]
mod tests {
    use super::super::tests::standing;
    use super::*;

    fn facts(about: &str, deployment: Deployment) -> Vec<Fact> {
        judged(&ServerInfo::new(about.replace(' ', "\r\n")), deployment)
    }

    #[test]
    fn a_replica_is_a_problem_where_the_master_was_meant() {
        let alone = facts("role:slave", Deployment::Single);
        assert!(matches!(standing(&alone, "role"), Assessment::Problem(_)));
        let behind_sentinels = facts("role:slave master_link_status:up", Deployment::Sentinel);
        assert_eq!(standing(&behind_sentinels, "role"), Assessment::Fine);
        assert_eq!(standing(&behind_sentinels, "link_to_master"), Assessment::Fine);
        let cut_off = facts("role:slave master_link_status:down", Deployment::Cluster);
        assert!(matches!(
            standing(&cut_off, "link_to_master"),
            Assessment::Warning(_)
        ));
    }

    #[test]
    fn a_master_whose_replicas_are_not_needed_for_a_write_is_warned_of() {
        let judged = |about: &str| standing(&facts(about, Deployment::Single), "connected_replicas");
        assert_eq!(judged("role:master connected_slaves:0"), Assessment::Fine);
        assert_eq!(
            judged("role:master connected_slaves:1 min_slaves_good_slaves:1"),
            Assessment::Fine
        );
        assert_eq!(
            judged("role:master connected_slaves:2"),
            Assessment::Warning(REPLICAS_NOT_NEEDED)
        );
    }

    #[test]
    fn a_master_that_is_to_be_replaced_needs_two_replicas() {
        for deployment in [Deployment::Sentinel, Deployment::Cluster] {
            let judged = |count: u8| {
                let about = format!("role:master connected_slaves:{count} min_slaves_good_slaves:{count}");
                standing(&facts(&about, deployment), "connected_replicas")
            };
            assert_eq!(judged(0), Assessment::Warning(NO_REPLICA));
            assert_eq!(judged(1), Assessment::Warning(ONE_REPLICA));
            assert_eq!(judged(2), Assessment::Fine);
        }
    }

    #[test]
    fn a_replica_that_is_behind_silent_or_out_of_step_is_warned_of() {
        let judged = |state: &str, offset: u64, silent: u64| {
            let about = format!(
                "role:master connected_slaves:1 master_repl_offset:{BEHIND_BYTES} \
                 slave0:ip=h,port=1,state={state},offset={offset},lag={silent}"
            );
            standing(&facts(&about, Deployment::Sentinel), "replica_lag")
        };
        assert_eq!(judged("online", 1, SILENT_SECS - 1), Assessment::Fine);
        for (state, offset, silent) in [
            ("online", 0, 0),
            ("online", BEHIND_BYTES, SILENT_SECS),
            ("wait_bgsave", BEHIND_BYTES, 0),
        ] {
            assert_eq!(
                judged(state, offset, silent),
                Assessment::Warning(BEHIND),
                "{state} {offset} {silent}"
            );
        }
    }

    #[test]
    fn sentinels_that_are_not_named_are_warned_of() {
        assert_eq!(of_sentinel("h:1", Some(2), 3).standing, Assessment::Fine);
        for others in [None, Some(1), Some(4)] {
            let fact = of_sentinel("h:1", others, 3);
            assert_eq!(fact.standing, Assessment::Warning(OTHER_SENTINELS), "{others:?}");
        }
    }
}
