//! Room: for more sessions below `maxmemory`, and for a rewrite and for replicas beside it.
//!
//! While a server rewrites its append-only file or feeds a new replica, it takes memory beyond `maxmemory`: a copy of every page that is
//! written meanwhile, and the buffers of replicas, which `maxmemory` does not count. A container that has no more is killed.

use super::super::info::ServerInfo;
use crate::store::fact::{Assessment, Fact};

/// Memory of a server, in quarters of its `maxmemory`: docs/scaling.md, "What a session takes in Redis".
const QUARTERS_OF_LIMIT: u64 = 7;

/// Less room than this part of `maxmemory` is worth a look: sign-ins are refused when there is none.
const ROOM_PART: u64 = 5;

const NO_LIMIT: &str = "set maxmemory, to four sevenths of what the server may take: full, it then refuses new sessions, where without a limit the system kills it";
const LITTLE_ROOM: &str = "less than a fifth of maxmemory is left, and without room no session begins: raise maxmemory, and the server's memory with it";
const NO_ROOM_TO_REWRITE: &str = "a rewrite of the append-only file or a new replica may get the server killed: give it maxmemory and three quarters more, or lower maxmemory";

/// Judges what a server answered.
pub(super) fn judged(info: &ServerInfo, server_memory: Option<u64>) -> Vec<Fact> {
    let used = info.number("used_memory").unwrap_or(0);
    let limit = info.number("maxmemory").unwrap_or(0);
    let mut facts = vec![
        Fact::fine("used_memory_bytes", used.to_string()),
        Fact::fine("maxmemory_bytes", limit.to_string()),
    ];
    if limit == 0 {
        facts[1].standing = Assessment::Warning(NO_LIMIT);
        return facts;
    }
    facts.push(room(info, used, limit));
    let machine = info.number("total_system_memory").filter(|bytes| *bytes > 0);
    if let Some(bytes) = server_memory.or(machine) {
        let of = if server_memory.is_some() {
            "of the server"
        } else {
            "of its machine; a container's limit is told by --server-memory"
        };
        facts.push(beside(bytes, limit, of));
    }
    facts
}

/// What is left for sessions. Buffers of replicas and of the append-only file do not count.
fn room(info: &ServerInfo, used: u64, limit: u64) -> Fact {
    let apart = info.number("mem_not_counted_for_evict").unwrap_or(0);
    let left = limit.saturating_sub(used.saturating_sub(apart));
    let standing = if left < limit / ROOM_PART {
        Assessment::Warning(LITTLE_ROOM)
    } else {
        Assessment::Fine
    };
    Fact::fine("memory_left_bytes", left.to_string()).standing(standing)
}

/// What there is beside the sessions.
fn beside(bytes: u64, limit: u64, of: &str) -> Fact {
    let needed = limit.saturating_mul(QUARTERS_OF_LIMIT) / 4;
    let standing = if bytes < needed {
        Assessment::Warning(NO_ROOM_TO_REWRITE)
    } else {
        Assessment::Fine
    };
    Fact::fine("memory_to_rewrite", format!("{needed} of {bytes} bytes {of}")).standing(standing)
}

#[cfg(test)]
mod tests {
    use super::super::tests::standing;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn facts(about: &str, server_memory: Option<u64>) -> Vec<Fact> {
        judged(&ServerInfo::new(about.replace(' ', "\r\n")), server_memory)
    }

    #[test]
    fn a_server_without_a_limit_is_warned_of() {
        let unlimited = facts("used_memory:100 maxmemory:0 total_system_memory:1000", None);
        assert!(matches!(
            standing(&unlimited, "maxmemory_bytes"),
            Assessment::Warning(_)
        ));
        assert_eq!(unlimited.len(), 2);
    }

    #[test]
    fn little_room_is_warned_of_and_buffers_of_replicas_take_none() {
        let left = |used: u64, apart: u64| {
            let about = format!("used_memory:{used} mem_not_counted_for_evict:{apart} maxmemory:1000");
            standing(&facts(&about, None), "memory_left_bytes")
        };
        assert_eq!(left(800, 0), Assessment::Fine);
        assert!(matches!(left(801, 0), Assessment::Warning(_)));
        assert_eq!(left(900, 100), Assessment::Fine);
        assert!(matches!(left(2_000, 0), Assessment::Warning(_)));
    }

    #[test]
    fn a_container_needs_what_the_manual_says_beside_its_sessions() {
        // What the manifests once had: the server was killed while it rewrote its file.
        let about = format!(
            "used_memory:1 maxmemory:{} total_system_memory:{}",
            192 * MIB,
            16_384 * MIB
        );
        let judged = |memory| standing(&facts(&about, memory), "memory_to_rewrite");
        assert!(matches!(judged(Some(256 * MIB)), Assessment::Warning(_)));
        assert!(matches!(judged(Some(336 * MIB - 1)), Assessment::Warning(_)));
        assert_eq!(judged(Some(336 * MIB)), Assessment::Fine);
        assert_eq!(judged(None), Assessment::Fine);
    }
}
