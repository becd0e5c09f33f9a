//! Sessions in the store: sealed on the way in, opened and judged on the way out.
//!
//! Invariants
//! - What comes out is valid now by the current durations; everything else is missing.
//! - Every write compares versions and publishes what changed; a removed session is never written again.

use std::sync::Arc;

use super::SessionsError;
use super::ports::{Seal, SealError};
use crate::session::change::{Change, Kind};
use crate::session::{Handle, Lifetime, Session, index};
use crate::store::{Inserted, Record, Replaced, SessionStore, StoreError};

/// How often a write that lost against another is tried again: each loss means somebody else's write succeeded.
const WRITE_ATTEMPTS: usize = 8;

/// Keeps sessions.
#[derive(Clone)]
pub struct Keeper {
    store: Arc<dyn SessionStore>,
    seal: Arc<dyn Seal>,
    lifetime: Lifetime,
}

/// What an edit wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Write the session as edited.
    Write,
    /// Write nothing.
    Leave,
}

impl Keeper {
    /// A keeper over a store; sessions are judged by `lifetime`.
    pub fn new(store: Arc<dyn SessionStore>, seal: Arc<dyn Seal>, lifetime: Lifetime) -> Self {
        Self {
            store,
            seal,
            lifetime,
        }
    }

    /// The store's clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.store.now_ms()
    }

    /// The durations in force.
    pub fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    /// The store itself, for leases and what else is no session.
    pub fn store(&self) -> &dyn SessionStore {
        self.store.as_ref()
    }

    /// What seals.
    pub fn seal(&self) -> &dyn Seal {
        self.seal.as_ref()
    }

    /// What seals, for whoever outlives this keeper.
    pub fn shared_seal(&self) -> Arc<dyn Seal> {
        Arc::clone(&self.seal)
    }

    /// Reads a session; `Missing` if there is none that is valid now.
    pub async fn load(&self, handle: Handle) -> Result<Session, SessionsError> {
        let record = self
            .store
            .load(&handle.text())
            .await?
            .ok_or(SessionsError::Missing)?;
        let session = self.open(&record)?;
        if session.is_valid(&self.lifetime, self.now_ms()) {
            Ok(session)
        } else {
            Err(SessionsError::Missing)
        }
    }

    /// Keeps a new session of version 1; `max_bytes` bounds what it takes.
    pub async fn insert(&self, session: &Session, max_bytes: usize) -> Result<Inserted, SessionsError> {
        let record = self.record(session, Some(max_bytes))?;
        let change = self.sealed_change(session, Kind::Created, "")?;
        Ok(self.store.insert(record, change).await?)
    }

    /// Edits a session that was read before and writes it as its next version, reading it again where another
    /// write came first. Gives the session as it is now, and whether this call wrote it.
    pub async fn edit<F>(
        &self,
        read: Session,
        kind: Kind,
        max_bytes: Option<usize>,
        mut edit: F,
    ) -> Result<(Session, bool), SessionsError>
    where
        F: FnMut(&mut Session) -> Result<Edit, SessionsError> + Send,
    {
        let mut current = read;
        for _ in 0..WRITE_ATTEMPTS {
            let mut edited = current.clone();
            if edit(&mut edited)? == Edit::Leave {
                return Ok((current, false));
            }
            edited.version = current.version.saturating_add(1);
            let record = self.record(&edited, max_bytes)?;
            let change = self.sealed_change(&edited, kind, "")?;
            match self.store.replace(record, current.version, Some(change)).await? {
                Replaced::Done => return Ok((edited, true)),
                Replaced::Stale => current = self.load(current.handle).await?,
                Replaced::Missing => return Err(SessionsError::Missing),
            }
        }
        Err(SessionsError::StaleVersion)
    }

    /// Removes the session of a handle and tells why. Gives it as it was last, or `None` if there was none to end.
    /// A record that cannot be read is removed all the same.
    pub async fn remove(&self, handle: Handle, cause: &str) -> Result<Removed, SessionsError> {
        let name = handle.to_string();
        let seen = match self.store.load(&name).await {
            Ok(Some(record)) => self.open(&record).ok(),
            Ok(None) => return Ok(Removed::Nothing),
            Err(StoreError::Corrupt) => None,
            Err(error) => return Err(error.into()),
        };
        let now_ms = self.now_ms();
        let change = Change {
            kind: Kind::Ended,
            handle,
            issuer: seen
                .as_ref()
                .map(|session| session.issuer.clone())
                .unwrap_or_default(),
            subject: seen
                .as_ref()
                .map(|session| session.subject.clone())
                .unwrap_or_default(),
            at_ms: now_ms,
            cause: cause.to_owned(),
        };
        let removed = match self.store.remove(&name, self.seal.seal_change(&change)?).await {
            Ok(Some(removed)) => self.open(&removed).map_err(SessionsError::from),
            Ok(None) => return Ok(Removed::Nothing),
            Err(error @ StoreError::Corrupt) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        match removed {
            Ok(session) if session.is_valid(&self.lifetime, now_ms) => {
                Ok(Removed::Session(Box::new(session)))
            }
            Ok(_) => Ok(Removed::Expired),
            Err(error) => {
                tracing::error!(session = %handle, %error, "a record that cannot be read was removed");
                Ok(Removed::Unreadable)
            }
        }
    }

    pub(super) fn open(&self, record: &Record) -> Result<Session, SealError> {
        self.seal
            .open_session(&record.name, record.version, &record.payload)
    }

    fn record(&self, session: &Session, max_bytes: Option<usize>) -> Result<Record, SessionsError> {
        let payload = self.seal.seal_session(session)?;
        if let Some(limit) = max_bytes
            && payload.len() > limit
        {
            return Err(SessionsError::TooLarge { limit });
        }
        let by_subject = index::by_subject(&session.issuer, &session.subject);
        let by_sid = session
            .sids()
            .map(|sid| index::by_provider_sid(&session.issuer, sid));
        Ok(Record {
            name: session.handle.to_string(),
            version: session.version,
            expires_at_ms: session.expires_at_ms(&self.lifetime),
            created_at_ms: session.created_at_ms,
            indexes: std::iter::once(by_subject).chain(by_sid).collect(),
            payload,
        })
    }

    fn sealed_change(&self, session: &Session, kind: Kind, cause: &str) -> Result<Vec<u8>, SealError> {
        self.seal.seal_change(&Change {
            kind,
            handle: session.handle,
            issuer: session.issuer.clone(),
            subject: session.subject.clone(),
            at_ms: self.now_ms(),
            cause: cause.to_owned(),
        })
    }
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
