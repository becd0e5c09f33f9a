//! Endings that must also reach sessions which are just being created or restored.
//!
//! A back-channel logout may arrive while its session is just being created. It finds no session to remove,
//! and the session appears a moment later. So an ending leaves a *mark*: a sealed record without index, with
//! the time of the ending's request, which expires by itself.
//!
//! Invariants
//! - An ending by a list writes the mark first. The creation of a session looks for marks afterwards.
//! - A mark ends a session if its time is not before the receipt of the session's tokens.
//! - Without that time, the time of the sign-in's claim counts. Without a claim, a mark ends the session if
//!   it appeared or moved during the creation.
//! - All times are the store's, in milliseconds, and are never compared with the provider's clock.
//! - An ending waits for no mark: if a full store rejects a mark, it is written later.
//! - A young session that ends leaves a mark under its own handle: a repeated request does not create it again.

use super::SessionStore;
use super::records::early_end_name;
use super::sealed_notes::MARK;
use crate::error::SessionsError;
use crate::session::{Cause, Claims, Handle, Name, Session, index};
use crate::store::Record;

/// How long a mark is kept: longer than the time from the receipt of the tokens to the session.
pub(crate) const MARK_KEPT_MS: u64 = 120_000;

/// How long a session's own mark is kept, and how long a repeated request finds its session: ten minutes.
pub(crate) const REQUEST_KEPT_MS: u64 = 600_000;

/// How long a theft is kept for its user: 30 days.
const THEFT_KEPT_MS: u64 = 30 * 86_400_000;

/// How long the record that the user was informed is kept.
const NOTICE_KEPT_MS: u64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndMark {
    version: u64,
    at_ms: u64,
    /// Empty if the mark applies to every user.
    subject: String,
}

impl SessionStore {
    /// Leaves a mark for sessions of a list that are just being created, with a subject only for that user's
    /// sessions. `ordered_at_ms` is the time of the ending's request.
    pub(crate) async fn mark_ended(
        &self,
        list: Name,
        subject: Option<&str>,
        ordered_at_ms: u64,
    ) -> Result<(), SessionsError> {
        let name = mark_name(list);
        self.write_mark(name, ordered_at_ms, subject.unwrap_or_default(), MARK_KEPT_MS)
            .await
    }

    /// The lists that may hold a mark or a demand for a new session.
    pub(crate) fn future_session_lists<'a>(
        &self,
        issuer: &str,
        subject: &str,
        sids: impl Iterator<Item = &'a str>,
        user: &Claims,
    ) -> Vec<Name> {
        let email = self.finds_by_email.then(|| user.verified_email()).flatten();
        index::mark_names(issuer, subject, sids, email.as_deref())
    }

    /// Leaves a mark under the name of a session that is about to end, if its creation may be repeated. A
    /// mark that cannot be written now is retried, and the retry ends a session that was created again.
    pub(crate) async fn mark_if_recent(&self, session: &Session, cause: Cause) {
        if self.now_ms().saturating_sub(session.created_at_ms) >= REQUEST_KEPT_MS {
            return;
        }
        if let Err(error) = self.mark_early_end(session.handle).await {
            tracing::warn!(session = %session.handle, error = &error as &dyn std::error::Error, "a session ends, but its mark could not be written yet");
            self.mark_early_end_later(session.handle, cause);
        }
    }

    /// In the background, writes the mark of a session that ended young.
    pub(crate) fn mark_early_end_later(&self, handle: Handle, cause: Cause) {
        let what = "the mark of a session that ended soon after it began";
        self.retry_later(what, self.clone(), move |session_store| async move {
            session_store.mark_early_end(handle).await?;
            session_store.remove(handle, cause).await.map(|_removed| ())
        });
    }

    /// Leaves a mark under the name of a session that ended young, or never began.
    pub(crate) async fn mark_early_end(&self, handle: Handle) -> Result<(), SessionsError> {
        let now_ms = self.now_ms();
        self.write_mark(early_end_name(handle), now_ms, "", REQUEST_KEPT_MS)
            .await
    }

    /// Whether the session of this handle ended young.
    pub(crate) async fn has_early_end_mark(&self, handle: Handle) -> Result<bool, SessionsError> {
        Ok(self.store().load(early_end_name(handle)).await?.is_some())
    }

    /// Leaves a mark for the next sign-in of a user whose session just ended by theft.
    pub(crate) async fn note_theft(&self, issuer: &str, subject: &str) -> Result<(), SessionsError> {
        let name = theft_name(issuer, subject);
        self.write_mark(name, self.now_ms(), subject, THEFT_KEPT_MS).await
    }

    /// When a user's session ended by theft, in milliseconds since the Unix epoch, if the user is not informed yet.
    pub(crate) async fn pending_theft_notice(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<u64>, SessionsError> {
        let name = theft_name(issuer, subject);
        let mark = self
            .store()
            .load(name)
            .await?
            .map(|record| self.open_mark(name, &record));
        Ok(mark.filter(|mark| mark.subject == subject).map(|mark| mark.at_ms))
    }

    /// Records that the user was informed of a theft. A later theft stays noted.
    pub(crate) async fn confirm_theft_notice(
        &self,
        issuer: &str,
        subject: &str,
        at_ms: u64,
    ) -> Result<(), SessionsError> {
        let (name, told) = (theft_name(issuer, subject), at_ms.to_be_bytes());
        let merge = |there: &Record| {
            let is_told = self.open_mark(name, there).at_ms == at_ms;
            is_told.then(|| told.to_vec())
        };
        let written = self.write_note(MARK, name, &told, NOTICE_KEPT_MS, merge).await;
        written.map(|_| ())
    }

    /// Whether a session of these lists and this user was ended at `since_ms` or later. One round trip.
    pub(crate) async fn ended_since(
        &self,
        lists: &[Name],
        subject: &str,
        since_ms: u64,
    ) -> Result<bool, SessionsError> {
        let marks = self.marks(lists).await?;
        Ok(marks
            .iter()
            .flatten()
            .any(|mark| mark.ends(subject, since_ms, None)))
    }

    /// The marks of these lists, in their order. One round trip.
    pub(crate) async fn marks(&self, lists: &[Name]) -> Result<Vec<Option<EndMark>>, SessionsError> {
        let names: Vec<Name> = lists.iter().copied().map(mark_name).collect();
        let loaded = self.store().load_many(&names).await?;
        let marks = names.into_iter().zip(loaded);
        let marks = marks.map(|(name, loaded)| Ok(loaded?.map(|record| self.open_mark(name, &record))));
        marks.collect()
    }

    /// The content of a mark. If this replica lacks its key, the mark counts from its write time, for every
    /// user.
    fn open_mark(&self, name: Name, record: &Record) -> EndMark {
        let note = self.vault().open_note(MARK, name, &record.payload).ok();
        let read = note.as_deref().and_then(|note| note.split_first_chunk());
        let (at_ms, subject) = match read {
            Some((time, subject)) => (u64::from_be_bytes(*time), String::from_utf8_lossy(subject)),
            None => (record.expires_at_ms.saturating_sub(MARK_KEPT_MS), "".into()),
        };
        EndMark {
            version: record.version,
            at_ms,
            subject: subject.into_owned(),
        }
    }

    async fn write_mark(
        &self,
        name: Name,
        at_ms: u64,
        subject: &str,
        kept_ms: u64,
    ) -> Result<(), SessionsError> {
        let note = [&at_ms.to_be_bytes()[..], subject.as_bytes()].concat();
        let merge = |there: &Record| {
            // A request that was delayed changes no later mark.
            let known = self.open_mark(name, there);
            (known.subject != subject || known.at_ms <= at_ms).then(|| note.clone())
        };
        match self.write_note(MARK, name, &note, kept_ms, merge).await {
            // Every retry found a later mark.
            Err(SessionsError::StaleVersion) => Ok(()),
            written => written.map(|_| ()),
        }
    }
}

impl EndMark {
    /// Whether it ends a session of `subject` that began at `since_ms`: by its time, or as it is not in `before`.
    pub(crate) fn ends(&self, subject: &str, since_ms: u64, before: Option<&[Option<EndMark>]>) -> bool {
        let concerns = self.subject.is_empty() || self.subject == subject;
        let is_new = before.is_some_and(|before| !before.iter().flatten().any(|known| known == self));
        concerns && (is_new || self.at_ms >= since_ms)
    }
}

fn mark_name(index: Name) -> Name {
    index::hashed(&[b"mark", index.digits().as_bytes()])
}

fn theft_name(issuer: &str, subject: &str) -> Name {
    let index_key = index::by_subject(issuer, subject);
    index::hashed(&[b"theft", index_key.digits().as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_ends_what_began_by_then_of_its_person() {
        for (subject, at_ms, since_ms, ends) in [
            ("", 5_000, 5_001, false),
            ("", 5_000, 5_000, true),
            ("alice", 5_000, 4_999, true),
            ("bob", 5_000, 4_999, false),
        ] {
            let mark = EndMark {
                version: 1,
                at_ms,
                subject: subject.to_owned(),
            };
            assert_eq!(mark.ends("alice", since_ms, None), ends, "{mark:?} {since_ms}");
        }
    }

    #[test]
    fn a_mark_that_appeared_or_moved_ends_whatever_its_time_is() {
        let mark = |version| EndMark {
            version,
            at_ms: 5_000,
            subject: "alice".to_owned(),
        };
        for (before, subject, ends) in [
            (None, "alice", true),
            (Some(mark(1)), "alice", true),
            (Some(mark(2)), "alice", false),
            (None, "bob", false),
        ] {
            assert_eq!(
                mark(2).ends(subject, 9_000, Some(std::slice::from_ref(&before))),
                ends,
                "{before:?}"
            );
        }
    }
}
