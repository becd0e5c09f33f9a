//! The connections to one address: one for each scheduler that calls.
//!
//! A connection is driven by the tokio runtime it was made on. A caller on another one would wake that runtime's thread
//! for its request, and be woken by it for the answer: several times what the call itself costs.

use std::net::SocketAddr;

use arc_swap::ArcSwap;
use tokio::runtime::{Handle, Id};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::gathering;

/// Schedulers that are remembered: more than a process has, unless it makes and drops them all the time (tests do).
const REMEMBERED_MAX: usize = 64;

/// Connections to one address, made when first used.
#[derive(Debug)]
pub(super) struct Channels {
    endpoint: Endpoint,
    address: SocketAddr,
    made: ArcSwap<Vec<(Id, Channel)>>,
}

impl Channels {
    /// Connects nowhere yet.
    pub(super) fn new(endpoint: Endpoint, address: SocketAddr) -> Self {
        Self {
            endpoint,
            address,
            made: ArcSwap::default(),
        }
    }

    /// The connection of the scheduler this is called on. Panics outside a tokio runtime.
    pub(super) fn here(&self) -> Channel {
        let here = Handle::current().id();
        if let Some(channel) = find(&self.made.load(), here) {
            return channel;
        }
        let address = self.address;
        let connector = service_fn(move |_: Uri| gathering::connect(address));
        let channel = self.endpoint.connect_with_connector_lazy(connector);
        self.made.rcu(|made| {
            let mut made = Vec::clone(made);
            if find(&made, here).is_none() {
                made.truncate(REMEMBERED_MAX - 1);
                made.insert(0, (here, channel.clone()));
            }
            made
        });
        find(&self.made.load(), here).unwrap_or(channel)
    }
}

fn find(made: &[(Id, Channel)], wanted: Id) -> Option<Channel> {
    let found = made.iter().find(|(id, _)| *id == wanted);
    found.map(|(_, channel)| channel.clone())
}
