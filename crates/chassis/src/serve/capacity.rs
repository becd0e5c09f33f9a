//! Bounds a listener's connections. A full listener evicts those idle for the longest, to accept new ones.
//!
//! For a client at its own limit, it evicts connections of this client. Invariants: a connection with a request
//! in flight is never evicted; a connection, or its WebSocket, counts until its socket is closed.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::{PerClientLimit, network};
use super::progress::ConnectionProgress;

/// The fraction of the limit to evict at once, so that a flood does not cost a search for each connection.
const PART: usize = 32;

/// The connections of a listener.
pub(super) struct Capacity {
    connections: usize,
    per_client: Option<PerClientLimit>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_id: HashMap<u64, OpenConnection>,
    /// Connections by client; those of proxies do not count.
    by_client: HashMap<Ipv6Addr, usize>,
}

struct OpenConnection {
    client: Option<Ipv6Addr>,
    progress: ConnectionProgress,
}

/// Counts a connection until dropped.
pub(super) struct ConnectionPermit {
    capacity: Arc<Capacity>,
    id: u64,
}

/// Why a connection was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoCapacity {
    /// The client is at its limit, and all of its connections are busy.
    OfClient,
    /// All connections are busy.
    Full,
}

impl Capacity {
    /// Starts without connections.
    pub(super) fn new(connections: usize, per_client: Option<PerClientLimit>) -> Arc<Self> {
        Arc::new(Self {
            connections,
            per_client,
            open: Mutex::default(),
        })
    }

    /// Admits a connection from this address.
    ///
    /// # Errors
    /// The limit is reached, and no connection is idle.
    pub(super) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        progress: &ConnectionProgress,
    ) -> Result<ConnectionPermit, NoCapacity> {
        let mut open = self.lock();
        let per_client = self
            .per_client
            .as_ref()
            .filter(|per_client| !(per_client.is_proxy)(address));
        let client = per_client.map(|_| network(address));
        if let (Some(per_client), Some(client)) = (per_client, client)
            && open
                .by_client
                .get(&client)
                .is_some_and(|count| *count >= per_client.connections)
            && !open.evict(per_client.connections, |connection| {
                connection.client == Some(client)
            })
        {
            return Err(NoCapacity::OfClient);
        }
        if open.by_id.len() >= self.connections && !open.evict(self.connections, |_| true) {
            return Err(NoCapacity::Full);
        }
        let id = open.next;
        open.next += 1;
        if let Some(client) = client {
            *open.by_client.entry(client).or_default() += 1;
        }
        let progress = progress.clone();
        open.by_id.insert(id, OpenConnection { client, progress });
        Ok(ConnectionPermit {
            capacity: Arc::clone(self),
            id,
        })
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Ends the connections idle for the longest, among those that `among` selects. Returns whether one was
    /// idle. The search visits all connections, so it evicts several at once: a fraction of their `limit`.
    fn evict(&mut self, limit: usize, among: impl Fn(&OpenConnection) -> bool) -> bool {
        let idle = self.by_id.iter().filter(|(_, connection)| among(connection));
        let mut idle: Vec<_> = idle
            .filter_map(|(id, connection)| Some((connection.progress.idle_since()?, *id)))
            .collect();
        let count = (limit / PART).max(1);
        if count < idle.len() {
            idle.select_nth_unstable(count - 1);
            idle.truncate(count);
        }
        for (_, id) in &idle {
            if let Some(connection) = self.remove(*id) {
                connection.progress.evicted.cancel();
            }
        }
        !idle.is_empty()
    }

    fn remove(&mut self, id: u64) -> Option<OpenConnection> {
        let connection = self.by_id.remove(&id)?;
        if let Some(client) = connection.client
            && let Some(count) = self.by_client.get_mut(&client)
        {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&client);
            }
        }
        Some(connection)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.capacity.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    async fn later() -> ConnectionProgress {
        tokio::time::advance(Duration::from_secs(1)).await;
        ConnectionProgress::default()
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_listener_evicts_the_idlest_connection_and_no_busy_one() {
        let capacity = Capacity::new(2, None);
        let (one, other) = (later().await, later().await);
        let _permits = (
            capacity.admit(ip(1), &one).unwrap(),
            capacity.admit(ip(2), &other).unwrap(),
        );
        let busy = one.begin(0);
        let third = later().await;
        let _third = capacity.admit(ip(3), &third).unwrap();
        assert!(other.evicted.is_cancelled() && !one.evicted.is_cancelled());
        let _busy = third.begin(0);
        assert_eq!(
            capacity.admit(ip(4), &later().await).err(),
            Some(NoCapacity::Full)
        );
        drop(busy);
        assert!(capacity.admit(ip(4), &later().await).is_ok());
        assert!(one.evicted.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_at_its_limit_evicts_its_own_connections_and_a_proxy_has_no_limit() {
        let per_client = PerClientLimit {
            connections: 1,
            is_proxy: Arc::new(|address| address == ip(9)),
        };
        let capacity = Capacity::new(100, Some(per_client));
        let neighbour = ConnectionProgress::default();
        let _neighbour = capacity.admit(ip(1), &neighbour).unwrap();
        let first = later().await;
        let evicted = capacity.admit(ip(2), &first).unwrap();
        let second = later().await;
        let permit = capacity.admit(ip(2), &second).unwrap();
        assert!(first.evicted.is_cancelled() && !neighbour.evicted.is_cancelled());
        // An evicted connection does not count twice once it is gone.
        drop(evicted);
        let busy = second.begin(0);
        assert_eq!(
            capacity.admit(ip(2), &later().await).err(),
            Some(NoCapacity::OfClient)
        );
        drop((busy, permit));
        let _again = capacity.admit(ip(2), &later().await).unwrap();
        let proxy: Vec<_> = (0..10).map(|_| ConnectionProgress::default()).collect();
        let permits: Vec<_> = proxy
            .iter()
            .map(|one| capacity.admit(ip(9), one).unwrap())
            .collect();
        assert!(permits.len() == 10 && proxy.iter().all(|one| !one.evicted.is_cancelled()));
    }
}
