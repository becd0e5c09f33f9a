//! Telling what happens to sessions as it happens.
//!
//! Invariants
//! - A consumer never silently misses an ending: a gap, a change that cannot be read, or one that may concern the
//!   consumer but cannot be attributed is sent as `Missed`.
//! - A heartbeat comes only when everything before it was sent; nothing is buffered for a consumer that does not read.
//! - Watching never keeps a session alive.

use std::time::Duration;

use futures_util::stream::{BoxStream, try_unfold};
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{Sessions, SessionsError};
use crate::session::Handle;
use crate::session::change::SessionChange;
use crate::store::{StoreError, StoreUpdate};

/// The time between two heartbeats. A watcher takes three missed ones for a dead stream, so every replica notices within the second in
/// which an ending has to be seen (docs/scaling.md).
pub const WATCH_HEARTBEAT: Duration = Duration::from_millis(300);

/// Which sessions are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchScope {
    /// All.
    All,
    /// Those of a person.
    Person {
        /// Issuer identifier of the provider.
        issuer: String,
        /// The person at that issuer.
        subject: String,
    },
    /// One.
    Session(Handle),
}

/// What a watcher receives, each with the position to resume after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchUpdate {
    /// Something happened.
    Change(SessionChange),
    /// Nothing happened; everything up to here was sent. The next one comes after this time at the latest.
    Heartbeat(Duration),
    /// Something was lost: whatever is remembered has to be read again.
    Missed,
}

/// What a watch gives: the update, when by the store's clock, and the position to resume after it.
pub(crate) type Watching = BoxStream<'static, Result<(WatchUpdate, u64, String), SessionsError>>;

struct SessionWatch {
    published: BoxStream<'static, Result<StoreUpdate, StoreError>>,
    scope: WatchScope,
    position: String,
    beat: Interval,
    sessions: Sessions,
}

impl Sessions {
    /// Watches sessions; goes on after `resume` if the store still has that position.
    pub(crate) async fn watch(
        &self,
        scope: WatchScope,
        resume: Option<String>,
    ) -> Result<Watching, SessionsError> {
        // A watch that has sent nothing yet can be resumed as well: nothing is lost between two of them.
        let position = match resume {
            Some(position) => position,
            None => self.keeper.store().position().await?,
        };
        let published = self.keeper.store().published(Some(position.clone())).await?;
        // The first beat comes at once: it tells the consumer that it is listening.
        let mut beat = interval_at(Instant::now(), self.limits.watch_heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let watch = SessionWatch {
            published,
            scope,
            position,
            beat,
            sessions: self.clone(),
        };
        let updates = try_unfold(watch, |mut watch| async move {
            let update = watch.next().await?;
            Ok(update.map(|update| (update, watch)))
        });
        Ok(updates.boxed())
    }
}

impl SessionWatch {
    async fn next(&mut self) -> Result<Option<(WatchUpdate, u64, String)>, SessionsError> {
        loop {
            let update = tokio::select! {
                biased;
                published = self.published.try_next() => match published? {
                    Some(StoreUpdate::Event { position, payload }) => {
                        self.position = position;
                        self.read(&payload)
                    }
                    Some(StoreUpdate::Missed) => Some(WatchUpdate::Missed),
                    None => return Ok(None),
                },
                _ = self.beat.tick() => Some(WatchUpdate::Heartbeat(self.beat.period())),
            };
            if let Some(update) = update {
                return Ok(Some(self.update(update)));
            }
        }
    }

    fn update(&self, update: WatchUpdate) -> (WatchUpdate, u64, String) {
        let at_ms = match &update {
            WatchUpdate::Change(change) => change.at_ms,
            WatchUpdate::Heartbeat(_) | WatchUpdate::Missed => self.sessions.keeper.now_ms(),
        };
        (update, at_ms, self.position.clone())
    }

    /// What a payload means to this consumer; `None` if nothing.
    fn read(&self, payload: &[u8]) -> Option<WatchUpdate> {
        if payload.is_empty() {
            return None;
        }
        let change = match self.sessions.keeper.vault().open_change(payload) {
            Ok(change) => change,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a published change cannot be read"
                );
                return Some(WatchUpdate::Missed);
            }
        };
        let concerns = match &self.scope {
            WatchScope::All => true,
            WatchScope::Session(handle) => change.handle == *handle,
            WatchScope::Person { .. } if change.subject.is_empty() => return Some(WatchUpdate::Missed),
            WatchScope::Person { issuer, subject } => change.issuer == *issuer && change.subject == *subject,
        };
        concerns.then_some(WatchUpdate::Change(change))
    }
}
