//! Notes of revocations: written to the store before their session is removed. So a revocation survives the
//! death of the process, a lost answer of the store and an unavailable provider.
//!
//! Invariants
//! - A note is a sealed record of its own in one list that all replicas read. It is removed after a
//!   successful revocation, or after [`KEPT_MS`].
//! - A note whose session still exists belongs to a failed ending: its tokens are not revoked.
//! - Two replicas may revoke the same token, which does no harm (RFC 7009, section 2.2).

use std::collections::HashMap;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use prost::Message as _;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Refresher;
use crate::error::SessionsError;
use crate::session::{Handle, Name, RevocableToken, SessionId, index};
use crate::session_store::SessionStore;
use crate::session_store::sealed_notes::REVOCATION;
use crate::store::{Listing, Record};

/// How long a note is kept. Operators should notice a provider outage of more than a day.
const KEPT_MS: u64 = 86_400_000;

/// How often every replica looks for notes; an empty list costs one read.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// Age of a note before other replicas than its writer act on it: longer than most endings and revocations.
const OWN_MS: u64 = 10_000;

/// Age of a note with an existing session before it is dropped: longer than any call may take.
const FAILED_MS: u64 = 120_000;

/// Notes read at once.
const PAGE: usize = 50;

/// How long one replica has the notes to itself.
const LEASE: Duration = Duration::from_secs(60);

/// Pauses after a provider could not be reached: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LAST_PAUSE: Duration = Duration::from_secs(600);

/// The tokens to revoke at a provider.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RevocationNote {
    #[prost(string, tag = "1")]
    pub(super) issuer: String,
    /// In this order.
    #[prost(message, repeated, tag = "2")]
    pub(super) tokens: Vec<RevocableToken>,
    /// The session that was about to end; empty for tokens without one.
    #[prost(string, tag = "3")]
    session: String,
}

impl RevocationNote {
    /// The issuer of the server that revokes this token.
    pub(super) fn issuer_of<'a>(&'a self, token: &'a RevocableToken) -> &'a str {
        match token.server.as_str() {
            "" => &self.issuer,
            server => server,
        }
    }
}

/// Servers that could not be reached: the time of the next call, and the pause before it.
type Pauses = HashMap<String, (Instant, Duration)>;

impl Refresher {
    /// Notes tokens to revoke, if there are any, so that another replica can finish if this one dies. Returns
    /// the note and its name. A failed write is logged, and the revocation is tried anyway.
    pub(super) async fn note(
        &self,
        session_store: &SessionStore,
        issuer: &str,
        tokens: Vec<RevocableToken>,
        session: Option<Handle>,
    ) -> Option<(Name, RevocationNote)> {
        let first = tokens.first()?.value.text();
        let name = index::hashed(&[
            REVOCATION.as_bytes(),
            issuer.as_bytes(),
            first.expose().as_bytes(),
        ]);
        let note = RevocationNote {
            issuer: issuer.to_owned(),
            tokens,
            session: session.map(|handle| handle.to_string()).unwrap_or_default(),
        };
        let record = session_store.note(REVOCATION, name, &note.encode_to_vec(), KEPT_MS);
        let noted = async {
            let record = Record {
                indexes: vec![list()],
                ..record?
            };
            // An empty event: watchers ignore it. An existing note has the same content.
            Ok::<_, SessionsError>(session_store.store().insert(record, Vec::new()).await?)
        };
        if let Err(error) = noted.await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "a revocation could not be noted: it is tried only once");
        }
        Some((name, note))
    }

    /// Revokes the noted tokens later and in the background.
    pub(super) fn revoke_later(&self, name: Name, note: RevocationNote) {
        let refresher = self.clone();
        self.work
            .spawn(async move { refresher.revoke_and_forget(name, note).await });
    }

    /// Removes the note of a finished revocation.
    pub(super) async fn forget_note(&self, name: Name) {
        if let Err(error) = self.session_store.store().remove(name, Vec::new()).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the note of a revocation could not be removed yet"
            );
        }
    }

    /// Revokes the tokens noted by all replicas, until the service stops.
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
                    "noted revocations could not be processed"
                );
            }
        }
    }

    async fn revoke_under_lease(
        &self,
        holder: &str,
        pauses: &mut Pauses,
        shutdown: &CancellationToken,
    ) -> Result<(), SessionsError> {
        let store = self.session_store.store();
        let page = store.list(list(), None, PAGE).await?;
        if page.entries.is_empty() {
            return Ok(());
        }
        // A full store refuses the lease: then two replicas may revoke the same token, which does no harm.
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
    ) -> Result<(), SessionsError> {
        let until = Instant::now() + LEASE / 2;
        while Instant::now() < until && !shutdown.is_cancelled() {
            let names: Vec<Name> = page.entries.iter().map(|entry| entry.name).collect();
            for loaded in self.session_store.store().load_many(&names).await? {
                if let Ok(Some(record)) = loaded {
                    self.revoke_record(&record, pauses).await?;
                }
            }
            let Some(after) = page.next else { break };
            page = self
                .session_store
                .store()
                .list(list(), Some(&after), PAGE)
                .await?;
        }
        Ok(())
    }

    async fn revoke_record(&self, record: &Record, pauses: &mut Pauses) -> Result<(), SessionsError> {
        let age_ms = self.session_store.now_ms().saturating_sub(record.created_at_ms);
        if age_ms < OWN_MS {
            return Ok(());
        }
        // Another replica may have the key.
        let opened = self
            .session_store
            .vault()
            .open_note(REVOCATION, record.name, &record.payload);
        let note = opened
            .ok()
            .and_then(|text| RevocationNote::decode(&text[..]).ok());
        let Some(note) = note else {
            return Ok(());
        };
        if let Ok(handle) = Handle::parse(&note.session)
            && self.session_store.store().load(handle).await?.is_some()
        {
            if age_ms >= FAILED_MS {
                self.forget_note(record.name).await;
            }
            return Ok(());
        }
        let issuers = || note.tokens.iter().map(|token| note.issuer_of(token));
        let now = Instant::now();
        let is_paused = |issuer| matches!(pauses.get(issuer), Some((until, _)) if now < *until);
        if issuers().any(is_paused) {
            return Ok(());
        }
        if let Err(away) = self.revoke(&note).await {
            let last = pauses.get(away);
            let pause = last.map_or(FIRST_PAUSE, |(_, pause)| (*pause * 2).min(LAST_PAUSE));
            pauses.insert(away.to_owned(), (Instant::now() + pause, pause));
        } else {
            for issuer in issuers() {
                pauses.remove(issuer);
            }
            self.forget_note(record.name).await;
        }
        Ok(())
    }
}

/// The list of all notes.
fn list() -> Name {
    index::hashed(&[b"revocations"])
}
