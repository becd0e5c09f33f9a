//! State shared by the use cases: sessions in the store, refreshes, limits.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use tokio::sync::Semaphore;

use super::permits;
use crate::refresh::Refresher;
use crate::session::Lifetime;
use crate::session_store::SessionStore;

/// Bounds and durations of the use cases.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// A session in use is refreshed in the background if its last grant is older, in milliseconds; 0 for
    /// never. It ends if the provider refuses.
    pub revalidate_ms: u64,
    /// How long other replicas wait if the refreshing one dies.
    pub refresh_lease: Duration,
    /// Largest size of a sealed session, in bytes.
    pub max_bytes: usize,
    /// Most sessions of one person; 0 for no limit. The oldest end first.
    pub max_per_subject: usize,
    /// Whether operators search by email, address, name and provider.
    pub operator_search: bool,
    /// Interval of a watch's heartbeats.
    pub watch_heartbeat: Duration,
}

/// The use cases.
#[derive(Clone)]
pub struct Sessions {
    pub(super) session_store: SessionStore,
    pub(super) refresher: Arc<Refresher>,
    pub(super) limits: SessionLimits,
    pub(super) random: SystemRandom,
    /// Whether security events may demand a sign-in of new sessions.
    pub(super) has_demands: bool,
    /// One permit for each page of a list that may be in memory.
    pub(super) pages: Arc<Semaphore>,
    /// One permit for each search of an operator.
    pub(super) searches: Arc<Semaphore>,
    /// One permit for each part of a list whose sessions end.
    pub(super) endings: Arc<Semaphore>,
}

impl Sessions {
    /// Creates the use cases from the session store and the refresher.
    pub fn new(session_store: SessionStore, refresher: Arc<Refresher>, limits: SessionLimits) -> Self {
        Self {
            session_store,
            refresher,
            limits,
            random: SystemRandom::new(),
            has_demands: false,
            pages: Arc::new(Semaphore::new(permits::PAGES_AT_ONCE)),
            searches: Arc::new(Semaphore::new(permits::SEARCHES_AT_ONCE)),
            endings: Arc::new(Semaphore::new(permits::ENDINGS_AT_ONCE)),
        }
    }

    /// Sets whether new sessions are checked for demands of security events.
    #[must_use]
    pub fn with_demands(self, has_demands: bool) -> Self {
        Self { has_demands, ..self }
    }

    /// The same use cases for one worker, with its own store connections: workers share no lock and no
    /// reference count.
    pub(crate) fn for_worker(&self) -> Self {
        Self {
            session_store: self.session_store.for_worker(),
            ..self.clone()
        }
    }

    /// The durations in force.
    pub(crate) fn lifetime(&self) -> &Lifetime {
        self.session_store.lifetime()
    }
}
