//! Calculates a listener's share of the process memory: connections, and bytes for requests and answers.
//!
//! The program itself comes first; most of the rest goes to the main listener. The sum of all shares fits, so
//! that clients cannot get the container killed. docs/operating.md lists the limits by memory.

use super::byte_budget::UNCOUNTED_BYTES;

/// Upper limit on connections: below the usual limit on file descriptors in a cluster.
pub(super) const CONNECTIONS_MAX: usize = 16_384;

/// A few probes and collectors of metrics.
const ADMIN_CONNECTIONS: usize = 32;

/// The program without connections, but with full caches, in bytes.
const PROGRAM_BYTES: u64 = 20 * 1024 * 1024;

/// At least this fraction of the memory is for connections, even in small containers.
const LEAST_PART: u64 = 4;

/// Bytes of a connection: its uncounted bytes, the kernel's buffers, and the larger of two parts. One is the
/// HTTP/1.1 buffers on both sides of a proxy, the other a hundred HTTP/2 streams with their header table.
const CONNECTION_BYTES: u64 = 64 * 1024 + UNCOUNTED_BYTES as u64;

/// HTTP/2 streams included in [`CONNECTION_BYTES`].
const STREAMS_RECKONED: u32 = 100;

/// Bytes of each further stream, even a refused one: the library keeps its memory until the connection ends.
const STREAM_BYTES: u64 = 1024;

/// Counted bytes need up to this many times their size, for queues, tasks and unused parts of allocations.
const COUNTED: u64 = 2;

/// The role of a listener in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerRole {
    /// The main listener.
    Main,
    /// A secondary listener, for few callers with many calls.
    Side,
    /// Probes and metrics.
    Admin,
}

/// The share of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Connections at once.
    pub connections: usize,
    /// Bytes of requests in flight and their answers, over all connections.
    pub waiting_bytes: usize,
}

impl MemoryShare {
    /// The share in a process with `memory` bytes and this many streams a connection. `None` means unlimited.
    #[must_use]
    pub fn of(role: ListenerRole, streams: u32, memory: Option<u64>) -> Self {
        let all = memory.unwrap_or(u64::MAX);
        let fixed = PROGRAM_BYTES + Self::taken_by(ADMIN_CONNECTIONS, STREAMS_RECKONED);
        let room = all.saturating_sub(fixed).max(all / LEAST_PART);
        // In sixteenths of `room`. Over all listeners they add up to sixteen.
        let (connections, waiting) = match role {
            ListenerRole::Main => (10, 3),
            ListenerRole::Side => (1, 1),
            ListenerRole::Admin => (0, 1),
        };
        let part = |sixteenths: u64, each: u64| {
            let count = room / 16 / each;
            usize::try_from(count.saturating_mul(sixteenths)).unwrap_or(usize::MAX)
        };
        let (least, most) = match role {
            ListenerRole::Main => (16, CONNECTIONS_MAX),
            ListenerRole::Side => (16, 1_024),
            ListenerRole::Admin => (ADMIN_CONNECTIONS, ADMIN_CONNECTIONS),
        };
        Self {
            connections: part(connections, connection_bytes(streams)).clamp(least, most),
            waiting_bytes: part(waiting, COUNTED).clamp(WAITING_MIN, WAITING_MAX),
        }
    }

    /// The largest memory of these connections and streams, in bytes.
    fn taken_by(connections: usize, streams: u32) -> u64 {
        (connections as u64).saturating_mul(connection_bytes(streams))
    }
}

fn connection_bytes(streams: u32) -> u64 {
    CONNECTION_BYTES + u64::from(streams.saturating_sub(STREAMS_RECKONED)) * STREAM_BYTES
}

/// At least one answer with metrics fits.
const WAITING_MIN: usize = 512 * 1024;

/// More waiting bytes serve no client.
const WAITING_MAX: usize = 1024 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn connections(role: ListenerRole, streams: u32, memory: Option<u64>) -> usize {
        MemoryShare::of(role, streams, memory).connections
    }

    #[test]
    fn connections_follow_the_memory_there_is() {
        let main = |memory| connections(ListenerRole::Main, 100, memory);
        assert_eq!(main(Some(128 * MIB)), 700);
        assert_eq!(main(Some(64 * MIB)), 270);
        assert_eq!(main(Some(MIB)), 16);
        assert_eq!(main(Some(u64::MAX)), CONNECTIONS_MAX);
        assert_eq!(main(None), CONNECTIONS_MAX);
        assert_eq!(connections(ListenerRole::Main, 512, Some(128 * MIB)), 130);
        assert_eq!(connections(ListenerRole::Side, 100, Some(128 * MIB)), 70);
        assert_eq!(connections(ListenerRole::Admin, 16, None), ADMIN_CONNECTIONS);
    }

    #[test]
    fn all_listeners_together_fit_into_the_memory() {
        for memory in [64, 96, 128, 256, 1024, 24 * 1024].map(|mebibytes| mebibytes * MIB) {
            for main_streams in [100, 1_024] {
                let listeners = [
                    (ListenerRole::Main, main_streams),
                    (ListenerRole::Side, 128),
                    (ListenerRole::Admin, 16),
                ];
                let taken: u64 = listeners
                    .map(|(role, streams)| {
                        let share = MemoryShare::of(role, streams, Some(memory));
                        MemoryShare::taken_by(share.connections, streams)
                            + share.waiting_bytes as u64 * COUNTED
                    })
                    .iter()
                    .sum();
                assert!(taken + PROGRAM_BYTES <= memory, "{taken} of {memory}");
            }
        }
    }
}
