//! Records of sessions: how they are sealed, read, checked, listed and written.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::counts::SessionCounts;
use crate::error::SessionsError;
use crate::session::change::{ChangeKind, SessionChange};
use crate::session::{Handle, Lifetime, Name, Session, index};
use crate::store::{Inserted, KeyValueStore, Record, Replaced};
use crate::vault::{SealError, Vault};

/// How often a write is retried after a conflict: each conflict means that another writer succeeded.
const WRITE_ATTEMPTS: usize = 8;

/// Background retries at once: each is a waiting task with its names, about 2 MB in all.
const MAX_MADE_UP: usize = 1_024;

/// Stores sessions.
#[derive(Clone)]
pub struct SessionStore {
    store: Arc<dyn KeyValueStore>,
    vault: Arc<Vault>,
    lifetime: Lifetime,
    pub(super) retries: Arc<Semaphore>,
    /// Counts the events of sessions.
    pub(crate) counts: Option<SessionCounts>,
    /// Whether the user's verified email address also finds sessions, from their next write on.
    pub(crate) finds_by_email: bool,
    /// Whether operators search: a list of each issuer has all its sessions, from their next write on.
    pub(crate) is_searchable: bool,
}

impl SessionStore {
    /// Keeps sessions in a key-value store; `lifetime` decides whether they are valid.
    pub fn new(store: Arc<dyn KeyValueStore>, vault: Arc<Vault>, lifetime: Lifetime) -> Self {
        Self {
            store,
            vault,
            lifetime,
            retries: Arc::new(Semaphore::new(MAX_MADE_UP)),
            counts: None,
            finds_by_email: false,
            is_searchable: false,
        }
    }

    /// Sets whether operators search the sessions: a list of each issuer then has all of them, each address has
    /// a list, and endings leave notes.
    #[must_use]
    pub fn searchable(self, is_searchable: bool) -> Self {
        Self {
            finds_by_email: self.finds_by_email || is_searchable,
            is_searchable,
            ..self
        }
    }

    /// The same session store for one worker, with its own connections to the key-value store.
    pub(crate) fn for_worker(&self) -> Self {
        let store = self.store.for_worker();
        Self {
            store: store.unwrap_or_else(|| Arc::clone(&self.store)),
            ..self.clone()
        }
    }

    /// The store's clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.store.now_ms()
    }

    /// The current durations.
    pub(crate) fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    /// The store itself, for data that is no session: leases, remembered values, events, and revocation
    /// notes, which `refresh` reads and writes.
    pub(crate) fn store(&self) -> &dyn KeyValueStore {
        self.store.as_ref()
    }

    /// Seals notes and events, which other modules write.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Reads a session; `Missing` if no valid one exists.
    pub async fn load(&self, handle: Handle) -> Result<Session, SessionsError> {
        let record = self.store.load(handle).await?;
        self.valid(&record.ok_or(SessionsError::Missing)?)
    }

    /// Reads several sessions in one round trip, in the order of their handles, each as [`SessionStore::load`]
    /// does. The iterator opens each one when it reaches it.
    pub(crate) async fn load_many(
        &self,
        handles: &[Handle],
    ) -> Result<impl Iterator<Item = Result<Session, SessionsError>> + use<'_>, SessionsError> {
        let loaded = self.store.load_many(handles).await?;
        let loaded = loaded.into_iter();
        Ok(loaded.map(|loaded| self.valid(&loaded?.ok_or(SessionsError::Missing)?)))
    }

    fn valid(&self, record: &Record) -> Result<Session, SessionsError> {
        let session = self.open(record)?;
        if session.is_valid(&self.lifetime, self.now_ms()) {
            Ok(session)
        } else {
            Err(SessionsError::Missing)
        }
    }

    /// Stores a new session of version 1 of at most `max_bytes`. If the request may be repeated, a session
    /// that ended soon after its creation is not created again.
    pub async fn insert(
        &self,
        session: &Session,
        max_bytes: usize,
        may_be_repeated: bool,
    ) -> Result<Inserted, SessionsError> {
        let record = self.record(session, Some(max_bytes))?;
        let change = self.sealed_change(session, ChangeKind::Created)?;
        let ended = may_be_repeated.then(|| early_end_name(session.handle));
        let inserted = self.store.insert_unless(ended, record, change).await?;
        if let (Some(counts), Inserted::Done) = (&self.counts, inserted) {
            counts.created.inc();
        }
        Ok(inserted)
    }

    /// Edits a session that was read, and writes its next version if `edit` returns true. Reads it again
    /// after a conflict. Returns the current session and whether this call wrote it.
    pub async fn edit<F>(
        &self,
        read: Session,
        kind: ChangeKind,
        max_bytes: Option<usize>,
        mut edit: F,
    ) -> Result<(Session, bool), SessionsError>
    where
        F: FnMut(&mut Session) -> bool + Send,
    {
        let mut current = read;
        for _ in 0..WRITE_ATTEMPTS {
            let mut edited = current.clone();
            if !edit(&mut edited) {
                return Ok((current, false));
            }
            edited.version = current.version.saturating_add(1);
            let record = self.record(&edited, max_bytes)?;
            let change = self.sealed_change(&edited, kind)?;
            match self.store.replace(record, current.version, Some(change)).await? {
                Replaced::Done => {
                    if let (Some(counts), ChangeKind::Rolled) = (&self.counts, kind) {
                        counts.rolled.inc();
                    }
                    return Ok((edited, true));
                }
                Replaced::Stale => current = self.load(current.handle).await?,
                Replaced::Missing => return Err(SessionsError::Missing),
            }
        }
        Err(SessionsError::StaleVersion)
    }

    /// Writes a session as it was just read, with the same version and no event, to test whether the store
    /// accepts writes. False if another writer changed or removed it.
    pub(crate) async fn rewrite(&self, read: &Session) -> Result<bool, SessionsError> {
        let record = self.record(read, None)?;
        let written = self.store.replace(record, read.version, None).await?;
        Ok(written == Replaced::Done)
    }

    pub(super) fn open(&self, record: &Record) -> Result<Session, SealError> {
        self.vault
            .open_session(record.name, record.version, &record.payload)
    }

    pub(super) fn record(
        &self,
        session: &Session,
        max_bytes: Option<usize>,
    ) -> Result<Record, SessionsError> {
        let payload = self.vault.seal_session(session)?;
        if let Some(limit) = max_bytes
            && payload.len() > limit
        {
            return Err(SessionsError::TooLarge { limit });
        }
        let by_subject = index::by_subject(&session.issuer, &session.subject);
        let by_sid = session
            .sids()
            .map(|sid| index::by_provider_sid(&session.issuer, sid));
        let email = self
            .finds_by_email
            .then(|| session.user.verified_email())
            .flatten();
        let by_email = email.map(|email| index::by_email(&session.issuer, &email));
        let by_issuer = self.is_searchable.then(|| index::by_issuer(&session.issuer));
        Ok(Record {
            name: session.handle,
            version: session.version,
            expires_at_ms: session.expires_at_ms(&self.lifetime),
            created_at_ms: session.created_at_ms,
            indexes: std::iter::once(by_subject)
                .chain(by_sid)
                .chain(by_email)
                .chain(by_issuer)
                .collect(),
            payload,
        })
    }

    pub(super) fn sealed_change(&self, session: &Session, kind: ChangeKind) -> Result<Vec<u8>, SealError> {
        self.vault.seal_change(&SessionChange {
            kind,
            handle: session.handle,
            issuer: session.issuer.clone(),
            subject: session.subject.clone(),
            at_ms: self.now_ms(),
            cause: None,
        })
    }
}

/// The mark of a session that ended while it was young.
pub(super) fn early_end_name(handle: Handle) -> Name {
    index::hashed(&[b"young", handle.as_bytes()])
}
