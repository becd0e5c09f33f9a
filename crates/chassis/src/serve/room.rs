//! Who is connected: a listener that is full sends away those who have been idle for the longest, not who comes.
//!
//! The same holds for a client that has all of its own share. Invariants: a connection with a request in flight is never sent away
//! for another one; a connection counts until its socket is closed, a WebSocket's too.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::{Share, network};
use super::progress::Progress;

/// Of what there may be, this part is sent away at once: looking for the idlest is not to be what a flood costs.
const PART: usize = 32;

/// The connections of a listener.
pub(super) struct Room {
    connections: usize,
    share: Option<Share>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    connected: HashMap<u64, Connected>,
    /// Connections by client; those of proxies are not counted.
    by_client: HashMap<Ipv6Addr, usize>,
}

struct Connected {
    client: Option<Ipv6Addr>,
    progress: Progress,
}

/// A place among the connections, until dropped.
pub(super) struct Seat {
    room: Arc<Room>,
    id: u64,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// The client has its share, and all of its connections are busy.
    OfClient,
    /// All connections there may be are busy.
    Full,
}

impl Room {
    /// Nobody is connected yet.
    pub(super) fn new(connections: usize, share: Option<Share>) -> Arc<Self> {
        Arc::new(Self {
            connections,
            share,
            table: Mutex::default(),
        })
    }

    /// A place for a connection from this address.
    ///
    /// # Errors
    /// There is none, and nobody idle to take one from.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr, progress: &Progress) -> Result<Seat, NoSeat> {
        let mut table = self.lock();
        let share = self.share.as_ref().filter(|share| !(share.is_proxy)(address));
        let client = share.map(|_| network(address));
        if let (Some(share), Some(client)) = (share, client)
            && table
                .by_client
                .get(&client)
                .is_some_and(|count| *count >= share.connections)
            && !table.send_away(share.connections, |connected| connected.client == Some(client))
        {
            return Err(NoSeat::OfClient);
        }
        if table.connected.len() >= self.connections && !table.send_away(self.connections, |_| true) {
            return Err(NoSeat::Full);
        }
        let id = table.next;
        table.next += 1;
        if let Some(client) = client {
            *table.by_client.entry(client).or_default() += 1;
        }
        let progress = progress.clone();
        table.connected.insert(id, Connected { client, progress });
        Ok(Seat {
            room: Arc::clone(self),
            id,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Ends the connections that have been idle for the longest among some, of which there may be `limit`; no if none of them is
    /// idle. All have to be looked at, so that room is made for several at once.
    fn send_away(&mut self, limit: usize, among: impl Fn(&Connected) -> bool) -> bool {
        let idle = self.connected.iter().filter(|(_, connected)| among(connected));
        let mut idle: Vec<_> = idle
            .filter_map(|(id, connected)| Some((connected.progress.idle_since()?, *id)))
            .collect();
        let count = (limit / PART).max(1);
        if count < idle.len() {
            idle.select_nth_unstable(count - 1);
            idle.truncate(count);
        }
        for (_, id) in &idle {
            if let Some(connected) = self.remove(*id) {
                connected.progress.send_away();
            }
        }
        !idle.is_empty()
    }

    fn remove(&mut self, id: u64) -> Option<Connected> {
        let connected = self.connected.remove(&id)?;
        if let Some(client) = connected.client
            && let Some(count) = self.by_client.get_mut(&client)
        {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&client);
            }
        }
        Some(connected)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    async fn later() -> Progress {
        tokio::time::advance(Duration::from_secs(1)).await;
        Progress::default()
    }

    #[tokio::test(start_paused = true)]
    async fn the_idlest_goes_when_it_is_full_and_nobody_who_is_busy() {
        let room = Room::new(2, None);
        let (one, other) = (later().await, later().await);
        let _seats = (
            room.enter(ip(1), &one).unwrap(),
            room.enter(ip(2), &other).unwrap(),
        );
        let busy = one.begin(0);
        let third = later().await;
        let _third = room.enter(ip(3), &third).unwrap();
        assert!(other.is_sent_away() && !one.is_sent_away());
        let _busy = third.begin(0);
        assert_eq!(room.enter(ip(4), &later().await).err(), Some(NoSeat::Full));
        drop(busy);
        assert!(room.enter(ip(4), &later().await).is_ok());
        assert!(one.is_sent_away());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_at_its_share_makes_room_among_its_own_and_a_proxy_has_none() {
        let share = Share {
            connections: 1,
            is_proxy: Arc::new(|address| address == ip(9)),
        };
        let room = Room::new(100, Some(share));
        let neighbour = Progress::default();
        let _neighbour = room.enter(ip(1), &neighbour).unwrap();
        let first = later().await;
        let gone = room.enter(ip(2), &first).unwrap();
        let second = later().await;
        let seat = room.enter(ip(2), &second).unwrap();
        assert!(first.is_sent_away() && !neighbour.is_sent_away());
        // Who was sent away does not count twice when it is gone.
        drop(gone);
        let busy = second.begin(0);
        assert_eq!(room.enter(ip(2), &later().await).err(), Some(NoSeat::OfClient));
        drop((busy, seat));
        let _again = room.enter(ip(2), &later().await).unwrap();
        let proxy: Vec<_> = (0..10).map(|_| Progress::default()).collect();
        let seats: Vec<_> = proxy.iter().map(|one| room.enter(ip(9), one).unwrap()).collect();
        assert!(seats.len() == 10 && proxy.iter().all(|one| !one.is_sent_away()));
    }
}
