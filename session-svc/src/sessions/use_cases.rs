//! What the use cases share: sessions in the store, refreshes, limits.

use std::sync::Arc;
use std::time::Duration;

use ring::rand::SystemRandom;
use tokio::sync::Semaphore;

use super::permits;
use crate::keeper::Keeper;
use crate::refresh::Refresher;
use crate::session::Lifetime;

/// The bounds and durations of the use cases.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// A session in use whose last grant is older is refreshed in the background, and ends where the provider refuses, in
    /// milliseconds; 0 for never.
    pub revalidate_ms: u64,
    /// What other replicas wait when the one that refreshes dies.
    pub refresh_lease: Duration,
    /// Most bytes a sealed session may take.
    pub max_bytes: usize,
    /// Most sessions a person may have; 0 for no limit. The oldest end.
    pub max_per_subject: usize,
    /// How often a watch beats.
    pub watch_heartbeat: Duration,
}

/// The use cases.
#[derive(Clone)]
pub struct Sessions {
    pub(super) keeper: Keeper,
    pub(super) refresher: Arc<Refresher>,
    pub(super) limits: SessionLimits,
    pub(super) random: SystemRandom,
    /// Whether sessions may begin that owe a sign-in, because somebody is listened to who says so.
    pub(super) has_demands: bool,
    /// One permit for each page of a list that may be in memory.
    pub(super) pages: Arc<Semaphore>,
    /// One for each part of a list whose sessions end.
    pub(super) endings: Arc<Semaphore>,
}

impl Sessions {
    /// The use cases over what keeps sessions and what refreshes and revokes their tokens.
    pub fn new(keeper: Keeper, refresher: Arc<Refresher>, limits: SessionLimits) -> Self {
        Self {
            keeper,
            refresher,
            limits,
            random: SystemRandom::new(),
            has_demands: false,
            pages: Arc::new(Semaphore::new(permits::PAGES_AT_ONCE)),
            endings: Arc::new(Semaphore::new(permits::ENDINGS_AT_ONCE)),
        }
    }

    /// The same use cases of a service that listens to security events: a session that begins owes what they demand.
    #[must_use]
    pub fn with_demands(self, has_demands: bool) -> Self {
        Self { has_demands, ..self }
    }

    /// The same use cases for one worker, with store connections of its own: reads and writes of different workers
    /// contend for no lock and no reference count.
    pub(crate) fn for_worker(&self) -> Self {
        Self {
            keeper: self.keeper.for_worker(),
            ..self.clone()
        }
    }

    /// The durations in force.
    pub(crate) fn lifetime(&self) -> &Lifetime {
        self.keeper.lifetime()
    }
}
