//! Bounds the bytes held for clients: answers they have not read, and requests in flight.
//!
//! An HTTP/2 client may send a thousand requests on one connection and read no answer. So waiting bytes are
//! counted, for each connection and in total. If a connection is over its share, its next requests are
//! refused until its client reads. A connection may hold as much as is left free (the dynamic threshold of
//! Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998). A single client that reads nothing gets
//! half, two get a third each. The first kilobytes do not count. Bytes count until the socket accepts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes each connection may hold outside of the total: a request and a piece of its answer. Clients that
/// read their answers never compete for the total. `memory_share` counts them for each connection.
pub(super) const UNCOUNTED_BYTES: usize = 32 * 1024;

/// Bytes that all connections of a listener hold together, without the [`UNCOUNTED_BYTES`] of each.
#[derive(Debug)]
pub(super) struct TotalBudget {
    bytes: usize,
    held: AtomicUsize,
}

impl TotalBudget {
    /// A budget of this many bytes.
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            held: AtomicUsize::new(0),
        })
    }
}

/// Request extension: the bytes one connection holds. Clones share it; the default has no bound.
#[derive(Clone, Debug, Default)]
pub struct ByteBudget(Option<Arc<ConnectionBytes>>);

#[derive(Debug)]
struct ConnectionBytes {
    total: Arc<TotalBudget>,
    held: AtomicUsize,
    /// The part that waits for the socket.
    unsent: AtomicUsize,
}

/// A number of bytes, held until the permit is dropped.
#[derive(Debug)]
pub struct BytesPermit {
    budget: ByteBudget,
    bytes: usize,
}

impl ByteBudget {
    /// A connection that holds no bytes yet.
    pub(super) fn of(total: &Arc<TotalBudget>) -> Self {
        Self(Some(Arc::new(ConnectionBytes {
            total: Arc::clone(total),
            held: AtomicUsize::new(0),
            unsent: AtomicUsize::new(0),
        })))
    }

    pub(super) fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Holds this many more bytes; `None` if the connection is over its share.
    #[must_use]
    pub fn hold(&self, bytes: usize) -> Option<BytesPermit> {
        if let Some(connection) = &self.0 {
            let wanted = connection.held.load(Ordering::Relaxed).saturating_add(bytes);
            let free = || {
                connection
                    .total
                    .bytes
                    .saturating_sub(connection.total.held.load(Ordering::Relaxed))
            };
            if wanted > UNCOUNTED_BYTES && wanted > free() {
                return None;
            }
        }
        Some(self.must_hold(bytes))
    }

    /// Holds this many more bytes even over the share, because they exist already.
    pub(super) fn must_hold(&self, bytes: usize) -> BytesPermit {
        if let Some(connection) = &self.0 {
            let before = connection.held.fetch_add(bytes, Ordering::Relaxed);
            let counted = counted(before + bytes) - counted(before);
            if counted > 0 {
                connection.total.held.fetch_add(counted, Ordering::Relaxed);
            }
        }
        BytesPermit {
            budget: self.clone(),
            bytes,
        }
    }

    /// Releases the bytes of [`BytesPermit::hand_over`], after the socket has accepted all of them.
    pub(super) fn release_sent(&self) {
        if let Some(connection) = &self.0 {
            connection.release(connection.unsent.swap(0, Ordering::Relaxed));
        }
    }
}

impl BytesPermit {
    /// Marks the bytes as waiting for the socket: held until [`ByteBudget::release_sent`] or the connection's end.
    pub(super) fn hand_over(mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(connection) = &self.budget.0 {
            connection.unsent.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl ConnectionBytes {
    fn release(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        let counted = counted(before) - counted(before.saturating_sub(bytes));
        if counted > 0 {
            self.total.held.fetch_sub(counted, Ordering::Relaxed);
        }
    }
}

impl Drop for ConnectionBytes {
    fn drop(&mut self) {
        self.release(self.unsent.load(Ordering::Relaxed));
    }
}

/// The part of a connection's bytes that counts towards the total.
fn counted(held: usize) -> usize {
    held.saturating_sub(UNCOUNTED_BYTES)
}

impl Drop for BytesPermit {
    fn drop(&mut self) {
        if let Some(connection) = &self.budget.0 {
            connection.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: usize = 1024 * 1024;

    fn hold_all(budget: &ByteBudget, piece: usize) -> Vec<BytesPermit> {
        std::iter::from_fn(|| budget.hold(piece)).collect()
    }

    #[test]
    fn one_connection_gets_half_the_next_half_of_the_rest_and_all_is_given_back() {
        let total = TotalBudget::new(TOTAL);
        let (first, second, third) = (
            ByteBudget::of(&total),
            ByteBudget::of(&total),
            ByteBudget::of(&total),
        );
        let one = hold_all(&first, 1024);
        assert!(
            (TOTAL / 2..=TOTAL / 2 + UNCOUNTED_BYTES).contains(&(one.len() * 1024)),
            "{}",
            one.len()
        );
        let other = hold_all(&second, 1024);
        assert!(
            (TOTAL / 4..=TOTAL / 4 + UNCOUNTED_BYTES).contains(&(other.len() * 1024)),
            "{}",
            other.len()
        );
        assert!(third.hold(TOTAL / 8).is_some(), "others have their share");
        assert!(first.hold(1).is_none());
        drop((one, other));
        assert_eq!(total.held.load(Ordering::Relaxed), 0);
        assert!(first.hold(TOTAL / 2).is_some());
    }

    #[test]
    fn the_first_kilobytes_of_each_connection_are_not_counted() {
        let total = TotalBudget::new(TOTAL);
        let _more_than_there_is = ByteBudget::of(&total).must_hold(2 * TOTAL);
        let small = ByteBudget::of(&total);
        let held = hold_all(&small, 1024);
        assert_eq!(held.len() * 1024, UNCOUNTED_BYTES);
        drop(held);
        assert!(small.hold(UNCOUNTED_BYTES + 1).is_none());
        assert!(
            ByteBudget::default().hold(10 * TOTAL).is_some(),
            "who is not counted"
        );
    }

    #[test]
    fn what_is_handed_over_is_held_until_it_is_sent_or_its_connection_ends() {
        let total = TotalBudget::new(TOTAL);
        let held = || total.held.load(Ordering::Relaxed);
        let reads = ByteBudget::of(&total);
        reads.must_hold(UNCOUNTED_BYTES + 1_000).hand_over();
        assert_eq!(held(), 1_000);
        reads.release_sent();
        assert_eq!(held(), 0);
        reads.must_hold(UNCOUNTED_BYTES + 1_000).hand_over();
        drop(reads);
        assert_eq!(held(), 0);
    }
}
