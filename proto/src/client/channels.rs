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
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::gathering;
use super::reading::Reads;

/// Schedulers that are remembered: more than a process has, unless it makes and drops them all the time (tests do).
const REMEMBERED_MAX: usize = 64;

/// Streams on the connection calls take: half of the least that any server or proxy should take (RFC 9113, section 6.5.2).
const STREAMS_BESIDE_CALLS: usize = 50;

/// Streams on a connection of their own: that least.
const STREAMS_ALONE: usize = 100;

/// Connections to one address, made when first used.
#[derive(Debug)]
pub(super) struct Channels {
    endpoint: Endpoint,
    address: SocketAddr,
    made: ArcSwap<Vec<Own>>,
    carriers: Mutex<Vec<Carrier>>,
}

/// The connection of one scheduler for its calls, and the line for its reads.
#[derive(Clone, Debug)]
struct Own {
    scheduler: Id,
    channel: Channel,
    reads: Arc<Reads>,
}

/// A connection that carries streams; each of them holds a clone of `taken`.
#[derive(Debug)]
struct Carrier {
    scheduler: Id,
    channel: Channel,
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

    /// The connection of the scheduler this is called on. Panics outside a tokio runtime.
    pub(super) fn here(&self) -> Channel {
        self.own(|own| own.channel.clone())
    }

    /// The line for reads of the scheduler this is called on. Panics outside a tokio runtime.
    pub(super) fn reads(&self) -> Arc<Reads> {
        self.own(|own| Arc::clone(&own.reads))
    }

    fn own<T>(&self, take: impl Fn(&Own) -> T) -> T {
        let scheduler = Handle::current().id();
        let find = |made: &[Own]| made.iter().find(|own| own.scheduler == scheduler).map(&take);
        if let Some(found) = find(&self.made.load()) {
            return found;
        }
        let channel = self.another();
        let new = Own {
            scheduler,
            reads: Arc::new(Reads::over(channel.clone())),
            channel,
        };
        self.made.rcu(|made| {
            let mut made = Vec::clone(made);
            if find(&made).is_none() {
                made.truncate(REMEMBERED_MAX - 1);
                made.insert(0, new.clone());
            }
            made
        });
        find(&self.made.load()).unwrap_or_else(|| take(&new))
    }

    /// A connection of the scheduler this is called on with room for a stream. Panics outside a tokio runtime.
    pub(super) fn for_stream(&self) -> (Channel, StreamPlace) {
        let scheduler = Handle::current().id();
        let mut carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        // What carries nothing any more is closed, unless calls use it too.
        carriers.retain(|carrier| carrier.streams() > 0);
        let mut own = carriers.iter().filter(|carrier| carrier.scheduler == scheduler);
        if let Some(free) = own.clone().find(|carrier| carrier.streams() < carrier.places) {
            return (free.channel.clone(), StreamPlace(Arc::clone(&free.taken)));
        }
        let (channel, places) = if own.any(|carrier| carrier.places == STREAMS_BESIDE_CALLS) {
            (self.another(), STREAMS_ALONE)
        } else {
            (self.here(), STREAMS_BESIDE_CALLS)
        };
        let taken = Arc::new(());
        let place = StreamPlace(Arc::clone(&taken));
        carriers.push(Carrier {
            scheduler,
            channel: channel.clone(),
            places,
            taken,
        });
        (channel, place)
    }

    fn another(&self) -> Channel {
        let address = self.address;
        let connector = service_fn(move |_: Uri| gathering::connect(address));
        self.endpoint.connect_with_connector_lazy(connector)
    }
}
