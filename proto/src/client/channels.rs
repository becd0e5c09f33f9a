//! The connections to one address: one for calls, and more where streams would fill it.
//!
//! A server takes so many streams on one connection at once, and a call that finds none free waits until one ends. Watches
//! do not end, so calls never share a connection with more than a few of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use tonic::Status;
use tonic::transport::Endpoint;

use super::connection::ReplicaConnection;

/// Streams on the connection calls take: half of the least that any server or proxy should take (RFC 9113, section 6.5.2).
const STREAMS_BESIDE_CALLS: usize = 50;

/// Streams on a connection of their own: that least.
const STREAMS_ALONE: usize = 100;

/// Connections to one address.
#[derive(Debug)]
pub(super) struct Channels {
    endpoint: Endpoint,
    address: SocketAddr,
    for_calls: ArcSwapOption<ReplicaConnection>,
    for_streams: Mutex<Vec<StreamConnection>>,
}

/// A connection with streams; each of them holds a clone of `permits`.
#[derive(Debug)]
struct StreamConnection {
    connection: Arc<ReplicaConnection>,
    capacity: usize,
    permits: Arc<()>,
}

impl StreamConnection {
    fn streams(&self) -> usize {
        Arc::strong_count(&self.permits) - 1
    }
}

/// Counts a stream on its connection, held while the stream is open.
#[derive(Debug)]
pub(super) struct StreamPermit(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl Channels {
    /// Connects nowhere yet.
    pub(super) fn new(endpoint: Endpoint, address: SocketAddr) -> Self {
        Self {
            endpoint,
            address,
            for_calls: ArcSwapOption::default(),
            for_streams: Mutex::default(),
        }
    }

    /// The last connection that was made for calls.
    pub(super) fn last(&self) -> Option<Arc<ReplicaConnection>> {
        self.for_calls.load_full()
    }

    /// Makes another connection for calls.
    pub(super) async fn connect(&self) -> Result<Arc<ReplicaConnection>, Status> {
        let connection = self.another().await?;
        self.for_calls.store(Some(Arc::clone(&connection)));
        Ok(connection)
    }

    /// A connection with capacity for a stream: that for calls if it has any.
    pub(super) async fn for_stream(
        &self,
        calls: &Arc<ReplicaConnection>,
    ) -> Result<(Arc<ReplicaConnection>, StreamPermit), Status> {
        let beside_calls = match self.free_permit(calls) {
            Ok(permits) => return Ok(permits),
            Err(beside_calls) => beside_calls,
        };
        let (connection, capacity) = if beside_calls {
            (Arc::clone(calls), STREAMS_BESIDE_CALLS)
        } else {
            (self.another().await?, STREAMS_ALONE)
        };
        let permits = Arc::new(());
        let permit = StreamPermit(Arc::clone(&permits));
        let opened = StreamConnection {
            connection: Arc::clone(&connection),
            capacity,
            permits,
        };
        self.for_streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(opened);
        Ok((connection, permit))
    }

    /// A permit on a connection that has streams already; where there is none, whether the one for calls has any.
    fn free_permit(
        &self,
        calls: &Arc<ReplicaConnection>,
    ) -> Result<(Arc<ReplicaConnection>, StreamPermit), bool> {
        let mut for_streams = self.for_streams.lock().unwrap_or_else(PoisonError::into_inner);
        // What has no streams any more is closed, unless calls use it too.
        for_streams.retain(|one| one.streams() > 0 && !one.connection.is_going_away());
        match for_streams.iter().find(|one| one.streams() < one.capacity) {
            Some(free) => Ok((
                Arc::clone(&free.connection),
                StreamPermit(Arc::clone(&free.permits)),
            )),
            None => Err(!for_streams.iter().any(|one| Arc::ptr_eq(&one.connection, calls))),
        }
    }

    async fn another(&self) -> Result<Arc<ReplicaConnection>, Status> {
        ReplicaConnection::make(&self.endpoint, self.address)
            .await
            .map(Arc::new)
    }
}
