//! The replicas that names led to, and the choice among them.

use std::collections::HashMap;
use std::sync::Arc;

use super::connection::ReplicaConnection;
use super::endpoint::{EndpointId, ReplicaEndpoint};

/// What is known after a resolution.
#[derive(Default)]
pub(super) struct Resolution {
    pub(super) order: Vec<Arc<ReplicaEndpoint>>,
    pub(super) by_id: HashMap<EndpointId, Arc<ReplicaEndpoint>>,
}

/// A replica for a call, and the connection to it.
#[derive(Clone)]
pub(super) struct Picked {
    pub(super) replica: Arc<ReplicaEndpoint>,
    pub(super) connection: Arc<ReplicaConnection>,
}

impl Resolution {
    /// All replicas, the one whose turn it is first.
    pub(super) fn in_turn(&self, turn: usize) -> impl Iterator<Item = &Arc<ReplicaEndpoint>> {
        let replicas = &self.order;
        (0..replicas.len())
            .filter_map(move |step| replicas.get((turn % replicas.len() + step) % replicas.len()))
    }

    /// The next in turn besides those: one that is connected if there is any.
    pub(super) fn another(&self, turn: usize, than: &[Arc<ReplicaEndpoint>]) -> Option<Arc<ReplicaEndpoint>> {
        let mut others = self
            .in_turn(turn)
            .filter(|replica| !than.iter().any(|asked| Arc::ptr_eq(asked, replica)))
            .peekable();
        let next = others.peek().map(|replica| Arc::clone(replica));
        let connected = others.find(|replica| !replica.is_ejected() && replica.connected().is_some());
        connected.cloned().or(next)
    }

    /// The next in turn that is connected and not left out. Those before it that are not connected begin to be.
    pub(super) fn connected(&self, turn: usize) -> Option<Picked> {
        self.in_turn(turn)
            .filter(|replica| !replica.is_ejected())
            .find_map(|replica| match replica.connected() {
                Some(connection) => Some(Picked {
                    replica: Arc::clone(replica),
                    connection,
                }),
                None => {
                    replica.begin_to_connect();
                    None
                }
            })
    }
}
