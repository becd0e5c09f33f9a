//! The connections to one address: one for each scheduler that calls, and more where streams would fill it.
//!
//! A connection is driven by the tokio runtime it was made on. A caller on another one would wake that runtime's thread
//! for its request, and be woken by it for the answer: several times what the call itself costs.
//!
//! A server takes so many streams on one connection at once, and a call that finds none free waits until one ends. Watches
//! do not end, so calls never share a connection with more than a few of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::runtime::{Handle, Id};
use tonic::Status;
use tonic::transport::Endpoint;

use super::connection::Connection;

/// Schedulers that are remembered: more than a process has, unless it makes and drops them all the time (tests do).
const REMEMBERED_MAX: usize = 64;

/// Streams on the connection calls take: half of the least that any server or proxy should take (RFC 9113, section 6.5.2).
const STREAMS_BESIDE_CALLS: usize = 50;

/// Streams on a connection of their own: that least.
const STREAMS_ALONE: usize = 100;

/// Connections to one address.
#[derive(Debug)]
pub(super) struct Channels {
    endpoint: Endpoint,
    address: SocketAddr,
    made: ArcSwap<Vec<Own>>,
    carriers: Mutex<Vec<Carrier>>,
}

/// The connection of one scheduler for its calls.
#[derive(Clone, Debug)]
struct Own {
    scheduler: Id,
    connection: Arc<Connection>,
}

/// A connection that carries streams; each of them holds a clone of `taken`.
#[derive(Debug)]
struct Carrier {
    scheduler: Id,
    connection: Arc<Connection>,
    places: usize,
    taken: Arc<()>,
}

impl Carrier {
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
            made: ArcSwap::default(),
            carriers: Mutex::default(),
        }
    }

    /// The last connection that was made for calls of the scheduler this is called on. Panics outside a tokio runtime.
    pub(super) fn here(&self) -> Option<Arc<Connection>> {
        let scheduler = Handle::current().id();
        let made = self.made.load();
        let own = made.iter().find(|own| own.scheduler == scheduler);
        own.map(|own| Arc::clone(&own.connection))
    }

    /// Makes another connection for calls of the scheduler this is called on. Panics outside a tokio runtime.
    pub(super) async fn connect(&self) -> Result<Arc<Connection>, Status> {
        let connection = self.another().await?;
        let own = Own {
            scheduler: Handle::current().id(),
            connection: Arc::clone(&connection),
        };
        self.made.rcu(|made| {
            let mut made = Vec::clone(made);
            made.retain(|other| other.scheduler != own.scheduler);
            made.truncate(REMEMBERED_MAX - 1);
            made.insert(0, own.clone());
            made
        });
        Ok(connection)
    }

    /// A connection of the scheduler this is called on with room for a stream, that for calls if it has any. Panics outside a tokio
    /// runtime.
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
        let carrier = Carrier {
            scheduler: Handle::current().id(),
            connection: Arc::clone(&connection),
            places,
            taken,
        };
        self.carriers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(carrier);
        Ok((connection, place))
    }

    /// A place on a connection that carries streams already; where there is none, whether the one for calls has any.
    fn place(&self, calls: &Arc<Connection>) -> Result<(Arc<Connection>, StreamPlace), bool> {
        let scheduler = Handle::current().id();
        let mut carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        // What carries nothing any more is closed, unless calls use it too.
        carriers.retain(|carrier| carrier.streams() > 0 && !carrier.connection.is_going());
        let mut own = carriers.iter().filter(|carrier| carrier.scheduler == scheduler);
        match own.clone().find(|carrier| carrier.streams() < carrier.places) {
            Some(free) => Ok((Arc::clone(&free.connection), StreamPlace(Arc::clone(&free.taken)))),
            None => Err(!own.any(|carrier| Arc::ptr_eq(&carrier.connection, calls))),
        }
    }

    async fn another(&self) -> Result<Arc<Connection>, Status> {
        Connection::make(&self.endpoint, self.address).await.map(Arc::new)
    }
}
