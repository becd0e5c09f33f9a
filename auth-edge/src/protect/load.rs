//! How much is worked on at once: what is more is told to come back, before it costs anything.
//!
//! A request counts until its answer begins; streams, downloads and WebSockets that have begun do not. Deliberately
//! absent: queues; somebody who waits in one for long has given up when their turn comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::errors::Failure;

/// Places for requests. Clones share them.
#[derive(Clone, Debug)]
pub struct Places {
    /// How many there are; 0 is no limit.
    count: usize,
    taken: Arc<AtomicUsize>,
}

/// A place that is taken, given back when dropped.
#[derive(Debug)]
pub struct Place(Arc<Places>);

impl Places {
    /// So many; 0 is no limit.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            count,
            taken: Arc::default(),
        }
    }

    /// A place; none is needed where there is no limit.
    ///
    /// # Errors
    /// All are taken.
    pub fn take(self: &Arc<Self>) -> Result<Option<Place>, Failure> {
        if self.count == 0 {
            return Ok(None);
        }
        let place = Place(Arc::clone(self));
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.count {
            Ok(Some(place))
        } else {
            Err(Failure::Overloaded)
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_their_places_and_a_refusal_takes_none() {
        let places = Arc::new(Places::new(2));
        let others = Arc::new(Places::clone(&places));
        let (one, other) = (places.take().unwrap(), others.take().unwrap());
        for _ in 0..3 {
            assert!(matches!(places.take(), Err(Failure::Overloaded)));
        }
        drop(one);
        let again = others.take().unwrap();
        assert!(places.take().is_err());
        drop((other, again));
        assert!(places.take().is_ok());
        assert!(Arc::new(Places::new(0)).take().unwrap().is_none());
    }
}
