//! The connections to one address: one for calls, and others for streams.
//!
//! A server takes a limited number of streams on one connection, and a call that finds none free waits until one ends. Watches do not
//! end, so calls never share a connection with them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use tonic::Status;
use tonic::transport::Endpoint;

use super::connection::ReplicaConnection;

/// Streams on one connection: the least that any server or proxy should take (RFC 9113, section 6.5.2).
const STREAMS_MAX: usize = 100;

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

    /// A connection that takes another stream.
    pub(super) async fn for_stream(&self) -> Result<(Arc<ReplicaConnection>, StreamPermit), Status> {
        if let Some(free) = self.free_permit() {
            return Ok(free);
        }
        let connection = self.another().await?;
        let permits = Arc::new(());
        let permit = StreamPermit(Arc::clone(&permits));
        self.streams().push(StreamConnection {
            connection: Arc::clone(&connection),
            permits,
        });
        Ok((connection, permit))
    }

    /// A permit on a connection that has streams already. A connection without streams is closed.
    fn free_permit(&self) -> Option<(Arc<ReplicaConnection>, StreamPermit)> {
        let mut all = self.streams();
        all.retain(|one| one.streams() > 0 && !one.connection.is_going_away());
        let free = all.iter().find(|one| one.streams() < STREAMS_MAX)?;
        Some((
            Arc::clone(&free.connection),
            StreamPermit(Arc::clone(&free.permits)),
        ))
    }

    fn streams(&self) -> MutexGuard<'_, Vec<StreamConnection>> {
        self.for_streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn another(&self) -> Result<Arc<ReplicaConnection>, Status> {
        ReplicaConnection::make(&self.endpoint, self.address)
            .await
            .map(Arc::new)
    }
}
