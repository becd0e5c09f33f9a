//! Removing sessions from the store.
//!
//! Invariants: removing needs no reading, so that a record that is sealed with a key that is not in the ring, was written by a newer
//! release or is damaged ends like any other; an answer of the store that is lost is no failure.

use chassis::audit::{AuditRecord, Event, Outcome};

use super::{Keeper, KeeperError};
use crate::session::change::{ChangeKind, SessionChange};
use crate::session::{Cause, Handle, Session};
use crate::store::StoreError;

impl Keeper {
    /// Removes the session of a handle and publishes why. Gives it as it was last, or `Nothing` if there was none to end.
    /// A record that cannot be read is removed all the same.
    pub async fn remove(&self, handle: Handle, cause: Cause) -> Result<Removed, KeeperError> {
        match self.find(handle).await? {
            FoundSession::Session(seen) => self.remove_seen(handle, Some(&seen), cause).await,
            FoundSession::Unreadable(handle) => self.remove_seen(handle, None, cause).await,
            FoundSession::Nothing => Ok(Removed::Nothing),
        }
    }

    /// What there is of a handle, valid or not, before it is removed.
    pub(crate) async fn find(&self, handle: Handle) -> Result<FoundSession, KeeperError> {
        match self.store().load(handle).await {
            Ok(Some(record)) => Ok(match self.open(&record) {
                Ok(session) => FoundSession::Session(Box::new(session)),
                Err(_logged_when_it_is_removed) => FoundSession::Unreadable(handle),
            }),
            Ok(None) => Ok(FoundSession::Nothing),
            Err(StoreError::Corrupt) => Ok(FoundSession::Unreadable(handle)),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the session of a handle that was seen before; `None` if it could not be read. An answer that is lost is
    /// no failure: whoever finds the record gone takes what was seen for what was removed.
    pub(crate) async fn remove_seen(
        &self,
        handle: Handle,
        seen: Option<&Session>,
        cause: Cause,
    ) -> Result<Removed, KeeperError> {
        let removed = self.removed(handle, seen, cause).await?;
        match &removed {
            Removed::Session(session) => record(handle, Some((&session.issuer, &session.subject)), cause),
            Removed::Unreadable => record(handle, None, cause),
            Removed::Expired | Removed::Nothing => {}
        }
        if let (Some(counts), Removed::Session(_) | Removed::Unreadable) = (&self.counts, &removed) {
            counts.ended(cause);
        }
        Ok(removed)
    }

    async fn removed(
        &self,
        handle: Handle,
        seen: Option<&Session>,
        cause: Cause,
    ) -> Result<Removed, KeeperError> {
        let name = handle;
        let (issuer, subject) = seen.map_or(("", ""), |session| (&session.issuer, &session.subject));
        let change = SessionChange {
            kind: ChangeKind::Ended,
            handle,
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            at_ms: self.now_ms(),
            cause: Some(cause),
        };
        let event = self.vault().seal_change(&change)?;
        let mut removed = self.store().remove(name, event.clone()).await;
        if let Err(StoreError::Unavailable(_)) = &removed {
            removed = match (self.store().load(name).await, seen) {
                (Ok(None), Some(seen)) => return Ok(self.judged(seen.clone())),
                (Ok(None), None) => return Ok(Removed::Unreadable),
                (Ok(Some(_)) | Err(StoreError::Corrupt), _) => self.store().remove(name, event).await,
                (Err(_), _) => removed,
            };
        }
        let opened = match removed {
            Ok(Some(removed)) => self.open(&removed).map_err(KeeperError::from),
            Ok(None) => return Ok(Removed::Nothing),
            Err(error @ StoreError::Corrupt) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        Ok(match opened {
            Ok(session) => self.judged(session),
            Err(error) => {
                tracing::error!(session = %handle, error = &error as &dyn std::error::Error, "a record that cannot be read was removed: its refresh token, if it had one, is left to expire");
                Removed::Unreadable
            }
        })
    }

    fn judged(&self, session: Session) -> Removed {
        if session.is_valid(self.lifetime(), self.now_ms()) {
            Removed::Session(Box::new(session))
        } else {
            Removed::Expired
        }
    }
}

/// Writes the audit record of a session that ended; whose request did it is known by the task that answers it.
fn record(handle: Handle, actor: Option<(&str, &str)>, cause: Cause) {
    AuditRecord {
        actor,
        session: Some(&handle.to_string()),
        cause: Some(cause.name()),
        ..AuditRecord::new(Event::SessionEnd, Outcome::Success)
    }
    .write();
}

/// What there is of a handle.
#[derive(Debug)]
pub(crate) enum FoundSession {
    /// A session, which may have expired.
    Session(Box<Session>),
    /// A record that cannot be read.
    Unreadable(Handle),
    /// Nothing.
    Nothing,
}

/// What was removed.
#[derive(Debug)]
pub enum Removed {
    /// A valid session, as it was last.
    Session(Box<Session>),
    /// A record of a session that had expired already.
    Expired,
    /// A record that could not be read.
    Unreadable,
    /// Nothing: there was none.
    Nothing,
}

impl Removed {
    /// Whether there was a session to end.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self, Self::Session(_) | Self::Unreadable)
    }
}
