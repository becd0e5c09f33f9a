//! Separate connections for the streams to one address.
//!
//! A server allows a limited number of streams on one connection, and a call waits if none is free. Watches
//! do not end, so calls never share a connection with them.

use std::sync::{Arc, Mutex, PoisonError};

use super::connection::ReplicaConnection;

/// Streams on one connection: the minimum that servers and proxies should allow (RFC 9113, section 6.5.2).
const STREAMS_MAX: usize = 100;

/// Connections with streams; each stream holds a clone of its connection's permits.
#[derive(Debug, Default)]
pub(super) struct StreamConnections(Mutex<Vec<(Arc<ReplicaConnection>, Arc<()>)>>);

/// Counts a stream on its connection, held while the stream is open.
#[derive(Debug)]
pub(super) struct StreamPermit(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl StreamConnections {
    /// A connection that has streams and can take another one. Closes connections without streams.
    pub(super) fn free(&self) -> Option<(Arc<ReplicaConnection>, StreamPermit)> {
        let streams = |permits: &Arc<()>| Arc::strong_count(permits) - 1;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(connection, permits)| streams(permits) > 0 && !connection.state.is_going_away());
        let (connection, permits) = all.iter().find(|(_, permits)| streams(permits) < STREAMS_MAX)?;
        Some((Arc::clone(connection), StreamPermit(Arc::clone(permits))))
    }

    /// Adds a connection for a first stream.
    pub(super) fn add(&self, connection: &Arc<ReplicaConnection>) -> StreamPermit {
        let permits = Arc::new(());
        let permit = StreamPermit(Arc::clone(&permits));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((Arc::clone(connection), permits));
        permit
    }
}
