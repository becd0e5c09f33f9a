//! What use cases and refreshes tell each other, and what both need for events to other systems.

use async_trait::async_trait;
use tokio::time::Instant;

pub use crate::error::TokenRefreshError;
use crate::session::{Cause, Session};

/// A caller that waits for tokens, and since when.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCaller<'a> {
    /// The caller's identity as audit records show it; empty if it has none.
    pub caller: &'a str,
    /// When its call began.
    pub since: Instant,
}

/// Stores notes of endings for other systems, so that another replica can report them if this one dies. A note that cannot be written
/// delays nothing.
#[async_trait]
pub trait SignalOutbox: Send + Sync + 'static {
    /// A session is about to end: it is reported once it is gone.
    async fn note_ending(&self, ending: SessionEnding<'_>);

    /// A session that was about to end is gone.
    fn wake(&self);
}

/// A session that is about to end.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnding<'a> {
    /// As it was last seen.
    pub session: &'a Session,
    /// Why.
    pub cause: Cause,
    /// The session that takes its place.
    pub replaced_by: Option<&'a Session>,
}
