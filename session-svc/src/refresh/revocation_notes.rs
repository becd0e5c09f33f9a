//! Notes of revocations: written to the store before their session is removed, so that a revocation outlives the
//! process, a lost answer of the store and a provider that is away.
//!
//! Invariants
//! - A note is a record of its own, sealed, found by one list that all replicas look through; it is gone once the
//!   provider was called with success, or after [`KEPT_MS`].
//! - A note whose session is still there is of an ending that failed: nothing is revoked for it.
//! - Two replicas may ask for the same token: to revoke it twice does no harm (RFC 7009, section 2.2).

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use chassis::secret::Secret;
use prost::Message as _;
use ring::rand::SystemRandom;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Refresher;
use super::ports::RevocationNote;
use crate::keeper::KeeperError;
use crate::keeper::sealed_notes::REVOCATION;
use crate::session::{Handle, Name, RevocableToken, SessionId, TokenKind, index};
use crate::store::{Listing, LoadedRecord, Record};

/// How long a note is kept: a provider that is away for longer than a day is somebody's concern by then.
const KEPT_MS: u64 = 86_400_000;

/// How often every replica looks for notes; where there are none that costs one read.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// How old a note is before others than its writer act on it: longer than an ending and its revocation usually take.
const OWN_MS: u64 = 10_000;

/// How old the note of a session that is still there is before it is dropped: longer than any call may take.
const FAILED_MS: u64 = 120_000;

/// Notes read at once.
const PAGE: usize = 50;

/// How long one replica goes through the notes alone.
const LEASE: Duration = Duration::from_secs(60);

/// Pauses after a provider could not be reached: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LAST_PAUSE: Duration = Duration::from_secs(600);

/// What a note says, before it is sealed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct NoteText {
    #[prost(string, tag = "1")]
    issuer: String,
    /// The token that is taken back first: a refresh token, unless it is told otherwise.
    #[prost(string, tag = "2")]
    first_token: String,
    /// The session that was about to end; empty for a token without one.
    #[prost(string, tag = "3")]
    handle: String,
    /// Whether the first is an access token.
    #[prost(bool, tag = "4")]
    first_is_access: bool,
    /// The others, access tokens all. A release that does not know them leaves them to expire.
    #[prost(string, repeated, tag = "5")]
    access_tokens: Vec<String>,
}

impl NoteText {
    fn new(note: &RevocationNote, handle: Option<Handle>) -> Self {
        let mut tokens = note.tokens.iter();
        let first = tokens.next();
        Self {
            issuer: note.issuer.clone(),
            first_token: first
                .map(|token| token.value.expose().clone())
                .unwrap_or_default(),
            handle: handle.map(|handle| handle.to_string()).unwrap_or_default(),
            first_is_access: first.is_some_and(|token| token.kind == TokenKind::Access),
            access_tokens: tokens.map(|token| token.value.expose().clone()).collect(),
        }
    }

    fn into_note(self, name: Name) -> RevocationNote {
        let first = if self.first_is_access {
            TokenKind::Access
        } else {
            TokenKind::Refresh
        };
        let others = self
            .access_tokens
            .into_iter()
            .map(|token| (TokenKind::Access, token));
        let tokens = std::iter::once((first, self.first_token)).chain(others);
        RevocationNote {
            name,
            issuer: self.issuer,
            tokens: tokens
                .map(|(kind, token)| RevocableToken {
                    kind,
                    value: Secret::new(token),
                })
                .collect(),
        }
    }
}

/// Providers that could not be reached: when they are called again, and after which pause.
type Pauses = HashMap<String, (Instant, Duration)>;

impl Refresher {
    /// Notes what is to be revoked, unless its provider is recorded to revoke nothing. A note that cannot be written is
    /// logged: what it says is tried all the same.
    pub(super) async fn note(
        &self,
        issuer: &str,
        tokens: Vec<RevocableToken>,
        handle: Option<Handle>,
    ) -> RevocationNote {
        let first = tokens.first().map(|token| token.value.expose().as_bytes());
        let note = RevocationNote {
            name: index::hashed(&[
                REVOCATION.as_bytes(),
                issuer.as_bytes(),
                first.unwrap_or_default(),
            ]),
            issuer: issuer.to_owned(),
            tokens,
        };
        let is_useless = self
            .without_revocation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(issuer);
        if !is_useless && let Err(error) = self.insert_note(&note, handle).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "a revocation could not be noted: it is tried once");
        }
        note
    }

    async fn insert_note(&self, note: &RevocationNote, handle: Option<Handle>) -> Result<(), KeeperError> {
        let text = NoteText::new(note, handle);
        let record = Record {
            indexes: vec![list()],
            ..self
                .keeper
                .note(REVOCATION, note.name, &text.encode_to_vec(), KEPT_MS)?
        };
        // An empty event: watchers pass it over. One that is there already says the same.
        self.keeper.store().insert(record, Vec::new()).await?;
        Ok(())
    }

    /// Removes the note of a revocation that is done.
    pub(super) async fn forget_note(&self, note: &RevocationNote) {
        if let Err(error) = self.keeper.store().remove(note.name, Vec::new()).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the note of a revocation stays for now"
            );
        }
    }

    /// Revokes what this and other replicas have noted, until the service stops.
    pub(crate) async fn revoke_noted(self, shutdown: CancellationToken) {
        let mut pauses = Pauses::new();
        let Ok(holder) = SessionId::random(&SystemRandom::new()).map(|id| id.handle().to_string()) else {
            tracing::error!(
                "the operating system gave no random bytes: noted revocations are left to other replicas"
            );
            return;
        };
        loop {
            tokio::select! {
                () = sleep(LOOK_PAUSE) => {}
                () = shutdown.cancelled() => return,
            }
            if let Err(error) = self.revoke_under_lease(&holder, &mut pauses, &shutdown).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "notes of revocations cannot be looked through"
                );
            }
        }
    }

    async fn revoke_under_lease(
        &self,
        holder: &str,
        pauses: &mut Pauses,
        shutdown: &CancellationToken,
    ) -> Result<(), KeeperError> {
        let store = self.keeper.store();
        let page = store.list(list(), None, PAGE).await?;
        if page.entries.is_empty() {
            return Ok(());
        }
        // Refused where the store is full: then two replicas may ask, which does no harm.
        let lease = match store.acquire_lease(list(), holder, LEASE).await {
            Ok(None) => return Ok(()),
            Ok(lease) => lease,
            Err(_no_room) => None,
        };
        let revoked = self.revoke_pages(page, pauses, shutdown).await;
        if let Some(lease) = lease {
            store.release_lease(&lease).await?;
        }
        revoked
    }

    async fn revoke_pages(
        &self,
        mut page: Listing,
        pauses: &mut Pauses,
        shutdown: &CancellationToken,
    ) -> Result<(), KeeperError> {
        let until = Instant::now() + LEASE / 2;
        while Instant::now() < until && !shutdown.is_cancelled() {
            let names: Vec<Name> = page.entries.iter().map(|entry| entry.name).collect();
            for loaded in self.keeper.store().load_many(&names).await? {
                if let LoadedRecord::Record(record) = loaded {
                    self.revoke_record(&record, pauses).await?;
                }
            }
            let Some(after) = page.next else { break };
            page = self.keeper.store().list(list(), Some(&after), PAGE).await?;
        }
        Ok(())
    }

    async fn revoke_record(&self, record: &Record, pauses: &mut Pauses) -> Result<(), KeeperError> {
        let age_ms = self.keeper.now_ms().saturating_sub(record.created_at_ms);
        if age_ms < OWN_MS {
            return Ok(());
        }
        // Another replica may have the key.
        let opened = self
            .keeper
            .vault()
            .open_note(REVOCATION, record.name, &record.payload);
        let Some(text) = opened.ok().and_then(|text| NoteText::decode(&text[..]).ok()) else {
            return Ok(());
        };
        let handle = Handle::parse(&text.handle);
        let note = text.into_note(record.name);
        if let Ok(handle) = handle
            && self.keeper.store().load(handle).await?.is_some()
        {
            if age_ms >= FAILED_MS {
                self.forget_note(&note).await;
            }
            return Ok(());
        }
        let pause = pauses.get(&note.issuer).copied();
        if pause.is_some_and(|(until, _)| Instant::now() < until) {
            return Ok(());
        }
        if self.revoke(&note).await {
            pauses.remove(&note.issuer);
            self.forget_note(&note).await;
        } else {
            let pause = pause.map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(LAST_PAUSE));
            pauses.insert(note.issuer, (Instant::now() + pause, pause));
        }
        Ok(())
    }
}

/// The list all notes are found by.
fn list() -> Name {
    index::hashed(&[b"revocations"])
}
