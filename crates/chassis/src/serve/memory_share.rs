//! What a listener may take of the memory of its process: connections, and bytes for what is done over them.
//!
//! The program itself comes first; most of the rest is for the listener that a service is there for. All shares together fit, whatever
//! clients do, so that a container is not killed for them: docs/operating.md has the limits by memory.

use super::byte_budget::UNCOUNTED_BYTES;

/// Connections at once, however much memory there is: below what descriptors allow in a cluster.
pub(super) const CONNECTIONS_MAX: usize = 16_384;

/// A few probes and collectors of metrics.
const ADMIN_CONNECTIONS: usize = 32;

/// The program before anybody connects, its caches filled, in bytes.
const PROGRAM_BYTES: u64 = 20 * 1024 * 1024;

/// At least this part of the memory is for connections, however little there is.
const LEAST_PART: u64 = 4;

/// A connection that holds as much as it may without being counted, in bytes: what it may hold, the kernel's part, the buffers of HTTP/1.1 on
/// both sides of a proxy, or a hundred streams of HTTP/2 and the table of their fields.
const CONNECTION_BYTES: u64 = 64 * 1024 + UNCOUNTED_BYTES as u64;

/// Streams of HTTP/2 that are reckoned into that.
const STREAMS_RECKONED: u32 = 100;

/// What each stream beyond takes in bytes, though it be refused: the library keeps the room until its connection ends.
const STREAM_BYTES: u64 = 1024;

/// What is counted takes up to twice its size: queues, tasks and what the allocator does not fill.
const COUNTED: u64 = 2;

/// Which listener of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerRole {
    /// What the service is there for.
    Main,
    /// Another one, for few callers of many calls.
    Side,
    /// Probes and metrics.
    Admin,
}

/// What a listener may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Connections at once.
    pub connections: usize,
    /// What requests in flight and their answers hold, all connections together, in bytes.
    pub waiting_bytes: usize,
}

impl MemoryShare {
    /// Of a process that may have `memory` bytes, with so many streams on a connection; of one that nobody limits where none is known.
    #[must_use]
    pub fn of(role: ListenerRole, streams: u32, memory: Option<u64>) -> Self {
        let all = memory.unwrap_or(u64::MAX);
        let fixed = PROGRAM_BYTES + Self::taken_by(ADMIN_CONNECTIONS, STREAMS_RECKONED);
        let room = all.saturating_sub(fixed).max(all / LEAST_PART);
        // In sixteenths of the room; those of all listeners are sixteen.
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

    /// Bytes that so many connections with so many streams each take at most.
    fn taken_by(connections: usize, streams: u32) -> u64 {
        (connections as u64).saturating_mul(connection_bytes(streams))
    }
}

fn connection_bytes(streams: u32) -> u64 {
    CONNECTION_BYTES + u64::from(streams.saturating_sub(STREAMS_RECKONED)) * STREAM_BYTES
}

/// One answer of metrics, however little memory there is.
const WAITING_MIN: usize = 512 * 1024;

/// More than that nobody waits for.
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
