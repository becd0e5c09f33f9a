//! The connections in use, one for each scheduler, and letting go of them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use chassis::runtime::PerScheduler;
use deadpool_redis::redis::RedisError;
use tokio::sync::{Mutex, watch};

use super::source::{Source, Wire};

/// A connection in use, and the pool's hold on it.
pub(super) struct PooledConnection {
    pub(super) wire: Wire,
    pub(super) number: usize,
    /// Which settings it was made with.
    pub(super) generation: usize,
    /// What made it: who follows its master does so as long as it is in use.
    pub(super) _source: Arc<Source>,
    pub(super) from_pool: Option<deadpool_redis::Connection>,
}

impl PooledConnection {
    /// Takes it out of its pool: one that leads to another server than it should answers the pool's question all the same.
    fn discard(self) {
        if let Some(pooled) = self.from_pool {
            drop(deadpool_redis::Connection::take(pooled));
        }
    }
}

/// A connection found in use.
pub(super) struct Found {
    pub(super) wire: Wire,
    pub(super) number: usize,
    pub(super) generation: usize,
}

impl Found {
    pub(super) fn shared(self) -> (Wire, usize) {
        (self.wire, self.number)
    }
}

#[derive(Default)]
pub(super) struct Lane {
    held: RwLock<Option<PooledConnection>>,
    /// When and why connecting failed last.
    pub(super) connecting: Mutex<Option<(Instant, RedisError)>>,
}

impl Lane {
    pub(super) fn wire(&self) -> Option<Found> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|held| Found {
            wire: held.wire.clone(),
            number: held.number,
            generation: held.generation,
        })
    }

    pub(super) fn hold(&self, held: PooledConnection) {
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    /// Lets connection `number` go, if it was not replaced meanwhile.
    pub(super) fn let_go(&self, number: usize) {
        self.let_go_if(|held| held.number == number);
    }

    fn let_go_if(&self, applies: impl Fn(&PooledConnection) -> bool) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = held.take_if(|held| applies(held)) {
            held.discard();
        }
    }
}

/// All of them.
pub(super) struct Lanes {
    each: PerScheduler<Lane>,
    /// How often all were let go.
    let_go: watch::Sender<usize>,
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            each: PerScheduler::new(Lane::default),
            let_go: watch::Sender::new(0),
        }
    }

    /// The one of this scheduler.
    pub(super) fn here(&self) -> Arc<Lane> {
        self.each.here()
    }

    /// Those of all schedulers.
    pub(super) fn all(&self) -> Vec<Arc<Lane>> {
        self.each.all()
    }

    /// Lets every connection go, those of listeners included. One that is being made meanwhile is not used either.
    pub(super) fn let_go_all(&self) {
        self.let_go.send_modify(|count| *count += 1);
        for lane in self.all() {
            lane.let_go_if(|_| true);
        }
    }

    /// Tells when all are let go the next time.
    pub(super) fn times_let_go(&self) -> watch::Receiver<usize> {
        self.let_go.subscribe()
    }

    /// How often all were let go.
    pub(super) fn times(&self) -> usize {
        *self.let_go.borrow()
    }
}
