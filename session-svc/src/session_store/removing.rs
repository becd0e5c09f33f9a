//! Removing sessions from the store.
//!
//! Invariants: removal needs no read, so that an unreadable record (missing key, newer release, damage) ends
//! like any other. A lost answer of the store is no failure.

use chassis::audit::{AuditRecord, Event, Outcome};

use super::{ListedSession, SessionStore};
use crate::error::SessionsError;
use crate::session::change::{ChangeKind, SessionChange};
use crate::session::{Cause, Handle, Session};
use crate::store::StoreError;

impl SessionStore {
    /// Removes the session of a handle and publishes the cause. Returns its last state, or `Nothing`.
    /// A record that cannot be read is removed as well.
    pub async fn remove(&self, handle: Handle, cause: Cause) -> Result<Removal, SessionsError> {
        match self.find(handle).await? {
            Some(seen) => self.remove_seen(handle, seen.session(), cause).await,
            None => Ok(Removal::Nothing),
        }
    }

    /// The session or unreadable record of a handle, valid or not, before its removal.
    pub(crate) async fn find(&self, handle: Handle) -> Result<Option<ListedSession>, SessionsError> {
        let record = match self.store().load(handle).await {
            Ok(Some(record)) => Some(record),
            Ok(None) => return Ok(None),
            Err(StoreError::Corrupt) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(session) = record.as_ref().and_then(|record| self.open(record).ok()) {
            return Ok(Some(ListedSession::Session(Box::new(session))));
        }
        let (created_at_ms, indexes) =
            record.map_or_else(Default::default, |record| (record.created_at_ms, record.indexes));
        Ok(Some(ListedSession::Unreadable {
            handle,
            created_at_ms,
            indexes,
        }))
    }

    /// Removes the session of a handle that was read; `None` if it could not be read. A lost answer is no
    /// failure: if the record is gone, the session as read counts as removed.
    pub(crate) async fn remove_seen(
        &self,
        handle: Handle,
        seen: Option<&Session>,
        cause: Cause,
    ) -> Result<Removal, SessionsError> {
        let removed = self.remove_record(handle, seen, cause).await?;
        match &removed {
            Removal::Session(session) => record(handle, Some((&session.issuer, &session.subject)), cause),
            Removal::Unreadable => record(handle, None, cause),
            Removal::Expired | Removal::Nothing => {}
        }
        if let (Some(counts), Removal::Session(_) | Removal::Unreadable) = (&self.counts, &removed) {
            counts.count_ended(cause);
        }
        if let (true, Removal::Session(session)) = (self.is_searchable, &removed) {
            self.note_ending(session, cause).await;
        }
        Ok(removed)
    }

    async fn remove_record(
        &self,
        handle: Handle,
        seen: Option<&Session>,
        cause: Cause,
    ) -> Result<Removal, SessionsError> {
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
        let mut removed = self.store().remove(handle, event.clone()).await;
        if let Err(StoreError::Unavailable(_)) = &removed {
            removed = match (self.store().load(handle).await, seen) {
                (Ok(None), Some(seen)) => return Ok(self.classify(seen.clone())),
                (Ok(None), None) => return Ok(Removal::Unreadable),
                (Ok(Some(_)) | Err(StoreError::Corrupt), _) => self.store().remove(handle, event).await,
                (Err(_), _) => removed,
            };
        }
        let opened = match removed {
            Ok(Some(removed)) => self.open(&removed).map_err(SessionsError::from),
            Ok(None) => return Ok(Removal::Nothing),
            Err(StoreError::Corrupt) => Err(StoreError::Corrupt.into()),
            Err(error) => return Err(error.into()),
        };
        Ok(match opened {
            Ok(session) => self.classify(session),
            Err(error) => {
                tracing::error!(session = %handle, error = &error as &dyn std::error::Error, "a record that cannot be read was removed: its refresh token, if it had one, is not revoked and expires");
                Removal::Unreadable
            }
        })
    }

    fn classify(&self, session: Session) -> Removal {
        if session.is_valid(self.lifetime(), self.now_ms()) {
            Removal::Session(Box::new(session))
        } else {
            Removal::Expired
        }
    }
}

/// Writes the audit record of a session that ended. Its request ID is that of the current task.
fn record(handle: Handle, actor: Option<(&str, &str)>, cause: Cause) {
    AuditRecord {
        actor,
        session: Some(&handle.to_string()),
        cause: Some(cause.name()),
        ..AuditRecord::new(Event::SessionEnd, Outcome::Success)
    }
    .write();
}

/// The result of a removal.
#[derive(Debug)]
pub enum Removal {
    /// A valid session, in its last state.
    Session(Box<Session>),
    /// A record of a session that had already expired.
    Expired,
    /// A record that could not be read.
    Unreadable,
    /// There was no record.
    Nothing,
}

impl Removal {
    /// Whether there was a session to end.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self, Self::Session(_) | Self::Unreadable)
    }
}
