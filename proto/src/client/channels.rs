//! The connections to one address: one for calls, and more where streams would fill it.
//!
//! A server takes so many streams on one connection at once, and a call that finds none free waits until one ends. Watches
//! do not end, so calls never share a connection with more than a few of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use tonic::Status;
use tonic::transport::Endpoint;

use super::connection::Connection;

/// Streams on the connection calls take: half of the least that any server or proxy should take (RFC 9113, section 6.5.2).
const STREAMS_BESIDE_CALLS: usize = 50;

/// Streams on a connection of their own: that least.
const STREAMS_ALONE: usize = 100;

/// Connections to one address.
#[derive(Debug)]
pub(super) struct Channels {
    endpoint: Endpoint,
    address: SocketAddr,
    for_calls: ArcSwapOption<Connection>,
    for_streams: Mutex<Vec<StreamConnection>>,
}

/// A connection with streams; each of them holds a clone of `taken`.
#[derive(Debug)]
struct StreamConnection {
    connection: Arc<Connection>,
    places: usize,
    taken: Arc<()>,
}

impl StreamConnection {
    fn streams(&self) -> usize {
        Arc::strong_count(&self.taken) - 1
    }
}

/// A stream's place on its connection, held while the stream is open.
#[derive(Debug)]
pub(super) struct StreamPlace(#[expect(dead_code, reason = "it is counted")] Arc<()>);

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
    pub(super) fn last(&self) -> Option<Arc<Connection>> {
        self.for_calls.load_full()
    }

    /// Makes another connection for calls.
    pub(super) async fn connect(&self) -> Result<Arc<Connection>, Status> {
        let connection = self.another().await?;
        self.for_calls.store(Some(Arc::clone(&connection)));
        Ok(connection)
    }

    /// A connection with room for a stream, that for calls if it has any.
    pub(super) async fn for_stream(
        &self,
        calls: &Arc<Connection>,
    ) -> Result<(Arc<Connection>, StreamPlace), Status> {
        let beside_calls = match self.place(calls) {
            Ok(taken) => return Ok(taken),
            Err(beside_calls) => beside_calls,
        };
        let (connection, places) = if beside_calls {
            (Arc::clone(calls), STREAMS_BESIDE_CALLS)
        } else {
            (self.another().await?, STREAMS_ALONE)
        };
        let taken = Arc::new(());
        let place = StreamPlace(Arc::clone(&taken));
        let opened = StreamConnection {
            connection: Arc::clone(&connection),
            places,
            taken,
        };
        self.for_streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(opened);
        Ok((connection, place))
    }

    /// A place on a connection that has streams already; where there is none, whether the one for calls has any.
    fn place(&self, calls: &Arc<Connection>) -> Result<(Arc<Connection>, StreamPlace), bool> {
        let mut for_streams = self.for_streams.lock().unwrap_or_else(PoisonError::into_inner);
        // What has no streams any more is closed, unless calls use it too.
        for_streams.retain(|one| one.streams() > 0 && !one.connection.is_going());
        match for_streams.iter().find(|one| one.streams() < one.places) {
            Some(free) => Ok((Arc::clone(&free.connection), StreamPlace(Arc::clone(&free.taken)))),
            None => Err(!for_streams.iter().any(|one| Arc::ptr_eq(&one.connection, calls))),
        }
    }

    async fn another(&self) -> Result<Arc<Connection>, Status> {
        Connection::make(&self.endpoint, self.address).await.map(Arc::new)
    }
}
