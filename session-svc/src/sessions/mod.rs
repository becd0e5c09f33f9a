//! The use cases of the session service.
//!
//! Invariants
//! - All time is the store's.
//! - A secret session ID is turned into its handle at once and goes no further.
//! - Whoever ends a session revokes its tokens at the provider, later and in the background.
//!
//! Deliberately absent: status codes, protobuf, the provider's protocol.

mod access_token;
mod api_token;
mod bind;
mod create;
mod end;
mod error;
mod limit;
mod list;
mod once;
mod permits;
mod read;
mod rotate;
mod security_event;
mod sign_in;
mod update;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use ring::rand::SystemRandom;
use tokio::sync::Semaphore;

pub(crate) use create::FINGERPRINT_BYTES;
pub use create::{Created, NewSession, SESSION_BYTES_MAX};
pub(crate) use end::Once;
pub use end::{EndAll, OfflineTokens};
pub use error::SessionsError;
pub(crate) use list::Page;
pub(crate) use security_event::{EventAction, EventOrder, Selector};
pub(crate) use sign_in::holder_hash;
pub(crate) use sign_in::{BeginSignInOutcome, SignInAttempt};
pub use update::Update;
pub use watch::WATCH_HEARTBEAT;
pub(crate) use watch::{WatchScope, WatchUpdate, Watching};

use crate::keeper::Keeper;
use crate::refresh::Refresher;

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
    keeper: Keeper,
    refresher: Arc<Refresher>,
    limits: SessionLimits,
    random: SystemRandom,
    /// Whether sessions may begin that owe a sign-in, because somebody is listened to who says so.
    has_demands: bool,
    /// One permit for each page of a list that may be in memory.
    pages: Arc<Semaphore>,
    /// One for each part of a list whose sessions end.
    endings: Arc<Semaphore>,
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

    /// Whether security events may demand a sign-in.
    pub(crate) fn has_demands(&self) -> bool {
        self.has_demands
    }

    /// The same use cases for one worker, with store connections of its own: requests of different workers
    /// contend for no lock and no reference count.
    pub(crate) fn for_worker(&self) -> Self {
        Self {
            keeper: self.keeper.for_worker(),
            ..self.clone()
        }
    }

    /// The durations in force.
    pub(crate) fn lifetime(&self) -> &crate::session::Lifetime {
        self.keeper.lifetime()
    }
}
