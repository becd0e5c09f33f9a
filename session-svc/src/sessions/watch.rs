//! Reporting session changes as they happen.
//!
//! Invariants
//! - A consumer never silently misses an ending: a gap, an unreadable change, or one that may concern the
//!   consumer but cannot be attributed is sent as `Missed`.
//! - A heartbeat comes only after everything before it was sent. Nothing is buffered for a slow consumer.
//! - Watching never extends a session.

use std::time::Duration;

use futures_util::stream::{BoxStream, try_unfold};
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{Sessions, SessionsError};
use crate::session::Handle;
use crate::session::change::{ChangeKind, SessionChange};
use crate::store::{StoreError, StoreUpdate};

/// Interval of heartbeats. A watcher treats three missed ones as a dead stream. So every replica notices
/// within the second in which an ending must arrive (docs/scaling.md).
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
    /// Beginnings and ends of all sessions of this issuer.
    Provider(String),
}

/// What a watcher receives, each with the position to resume after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchUpdate {
    /// A session changed.
    Change(SessionChange),
    /// No change; everything up to here was sent. The next heartbeat follows within this time.
    Heartbeat(Duration),
    /// Changes were lost: the consumer must reread all cached sessions.
    Missed,
}

/// The items of a watch: the update, its time by the store's clock, and the position to resume after it.
pub(crate) type Watching = BoxStream<'static, Result<(WatchUpdate, u64, String), SessionsError>>;

struct SessionWatch {
    published: BoxStream<'static, Result<StoreUpdate, StoreError>>,
    scope: WatchScope,
    position: String,
    beat: Interval,
    sessions: Sessions,
}

impl Sessions {
    /// Watches sessions; continues after `resume` if the store still has that position.
    pub(crate) async fn watch(
        &self,
        scope: WatchScope,
        resume: Option<String>,
    ) -> Result<Watching, SessionsError> {
        // A watch that has sent nothing can be resumed as well: no change is lost between two watches.
        let position = match resume {
            Some(position) => position,
            None => self.session_store.store().position().await?,
        };
        let published = self
            .session_store
            .store()
            .published(Some(position.clone()))
            .await?;
        // The first heartbeat comes at once and confirms that the watch is active.
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
            WatchUpdate::Heartbeat(_) | WatchUpdate::Missed => self.sessions.session_store.now_ms(),
        };
        (update, at_ms, self.position.clone())
    }

    /// What a payload means to this consumer; `None` if the payload does not concern it.
    fn read(&self, payload: &[u8]) -> Option<WatchUpdate> {
        if payload.is_empty() {
            return None;
        }
        let change = match self.sessions.session_store.vault().open_change(payload) {
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
            WatchScope::Person { .. } | WatchScope::Provider(_) if change.issuer.is_empty() => {
                return Some(WatchUpdate::Missed);
            }
            WatchScope::Provider(issuer) => {
                change.issuer == *issuer && matches!(change.kind, ChangeKind::Created | ChangeKind::Ended)
            }
            WatchScope::Person { .. } if change.subject.is_empty() => return Some(WatchUpdate::Missed),
            WatchScope::Person { issuer, subject } => change.issuer == *issuer && change.subject == *subject,
        };
        concerns.then_some(WatchUpdate::Change(change))
    }
}
