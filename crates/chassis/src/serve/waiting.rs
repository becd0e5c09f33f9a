//! What is kept for clients: answers nobody has taken yet, and the work on those to come.
//!
//! HTTP/2 lets a client ask a thousand times on one connection and take nothing. So what waits is counted, for each connection and
//! in all, and who has too much is refused until it takes some. One connection may hold as much as is left free for all others
//! (the dynamic threshold of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998): one that takes nothing gets half, two
//! a third each, and there is always as much left for those who come. A little is everybody's in any case.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What every connection may hold without being counted with the others, in bytes: those who ask and take never meet.
const EVERYBODYS: usize = 16 * 1024;

/// What all connections of a listener hold together beyond that.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    taken: AtomicUsize,
}

impl Room {
    /// Of so many bytes.
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            taken: AtomicUsize::new(0),
        })
    }
}

/// Request extension: what one connection holds, where that is bounded. Clones share it; of no connection, it holds everything.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Option<Arc<Own>>);

#[derive(Debug)]
struct Own {
    room: Arc<Room>,
    taken: AtomicUsize,
}

/// So many bytes, held until dropped.
#[derive(Debug)]
pub struct BytesPermit {
    waiting: Waiting,
    bytes: usize,
}

impl Waiting {
    /// Nothing yet.
    pub(super) fn of(room: &Arc<Room>) -> Self {
        Self(Some(Arc::new(Own {
            room: Arc::clone(room),
            taken: AtomicUsize::new(0),
        })))
    }

    pub(super) fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Holds so many bytes more; none if the connection has its part.
    #[must_use]
    pub fn hold(&self, bytes: usize) -> Option<BytesPermit> {
        if let Some(own) = &self.0 {
            let wanted = own.taken.load(Ordering::Relaxed).saturating_add(bytes);
            let free = || {
                own.room
                    .bytes
                    .saturating_sub(own.room.taken.load(Ordering::Relaxed))
            };
            if wanted > EVERYBODYS && wanted > free() {
                return None;
            }
        }
        Some(self.must_hold(bytes))
    }

    /// Holds so many bytes more, which are there in any case.
    pub(super) fn must_hold(&self, bytes: usize) -> BytesPermit {
        if let Some(own) = &self.0 {
            let before = own.taken.fetch_add(bytes, Ordering::Relaxed);
            let shared = shared(before + bytes) - shared(before);
            if shared > 0 {
                own.room.taken.fetch_add(shared, Ordering::Relaxed);
            }
        }
        BytesPermit {
            waiting: self.clone(),
            bytes,
        }
    }
}

/// The part of what a connection holds that counts with the others'.
fn shared(taken: usize) -> usize {
    taken.saturating_sub(EVERYBODYS)
}

impl Drop for BytesPermit {
    fn drop(&mut self) {
        if let Some(own) = &self.waiting.0 {
            let before = own.taken.fetch_sub(self.bytes, Ordering::Relaxed);
            let shared = shared(before) - shared(before.saturating_sub(self.bytes));
            if shared > 0 {
                own.room.taken.fetch_sub(shared, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1024 * 1024;

    fn hold_all(waiting: &Waiting, piece: usize) -> Vec<BytesPermit> {
        std::iter::from_fn(|| waiting.hold(piece)).collect()
    }

    #[test]
    fn one_connection_gets_half_and_the_next_half_of_what_is_left_and_all_is_given_back() {
        let room = Room::new(ROOM);
        let (first, second, third) = (Waiting::of(&room), Waiting::of(&room), Waiting::of(&room));
        let one = hold_all(&first, 1024);
        assert!(
            (ROOM / 2..=ROOM / 2 + EVERYBODYS).contains(&(one.len() * 1024)),
            "{}",
            one.len()
        );
        let other = hold_all(&second, 1024);
        assert!(
            (ROOM / 4..=ROOM / 4 + EVERYBODYS).contains(&(other.len() * 1024)),
            "{}",
            other.len()
        );
        assert!(third.hold(ROOM / 8).is_some(), "others find room");
        assert!(first.hold(1).is_none());
        drop((one, other));
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
        assert!(first.hold(ROOM / 2).is_some());
    }

    #[test]
    fn a_little_is_everybodys_in_any_case() {
        let room = Room::new(ROOM);
        let _more_than_there_is = Waiting::of(&room).must_hold(2 * ROOM);
        let small = Waiting::of(&room);
        let held = hold_all(&small, 1024);
        assert_eq!(held.len() * 1024, EVERYBODYS);
        drop(held);
        assert!(small.hold(EVERYBODYS + 1).is_none());
        assert!(Waiting::default().hold(10 * ROOM).is_some(), "who is not counted");
    }
}
