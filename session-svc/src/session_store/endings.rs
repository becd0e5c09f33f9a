//! Marks of endings: they also end sessions that are just being created or restored.
//!
//! A back-channel logout may arrive while its session is just being created. It finds no session to remove,
//! and the session appears a moment later. So an ending leaves a *mark*: a sealed record without index. It
//! holds the time of the ending's request, and expires by itself.
//!
//! Invariants
//! - The ending of a list's sessions writes its mark first. A creation writes the session, then reads the marks.
//! - A mark ends a session if the session's tokens were received at the mark's time or earlier.
//! - If no receipt time is known, the time at which an edge claimed the sign-in counts. Without a claim, a mark
//!   that appeared or changed during the creation ends the session.
//! - All times are the store's, in milliseconds, and are never compared with the provider's clock.
//! - A failed mark delays no ending: if a full store rejects the mark, the session service writes it later.
//! - A new session that ends leaves a mark under its own handle, so that no repeated request creates it again.

use super::SessionStore;
use super::records::early_end_name;
use super::sealed_notes::MARK;
use crate::error::SessionsError;
use crate::session::{Cause, Claims, Handle, Name, Session, index};
use crate::store::Record;

/// How long a mark is kept: longer than the time from the receipt of the tokens to the session's creation.
pub(crate) const MARK_KEPT_MS: u64 = 120_000;

/// How long a new session's own mark is kept, and how long a repeated creation finds its session: ten minutes.
pub(crate) const REQUEST_KEPT_MS: u64 = 600_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndMark {
    version: u64,
    at_ms: u64,
    /// Empty if the mark applies to every user.
    subject: String,
}

impl SessionStore {
    /// Leaves a mark for sessions of a list that are just being created. With `subject`, it applies only to that
    /// user. `ordered_at_ms` is the time of the ending's request.
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

    /// The lists of a new session: their marks and sign-in demands apply to it.
    pub(crate) fn future_session_lists<'a>(
        &self,
        issuer: &str,
        subject: &str,
        sids: impl Iterator<Item = &'a str>,
        user: &Claims,
    ) -> Vec<Name> {
        let email = self.finds_by_email.then(|| user.verified_email()).flatten();
        let mut lists = index::mark_names(issuer, subject, sids, email.as_deref());
        lists.extend(self.is_searchable.then(|| index::by_issuer(issuer)));
        lists
    }

    /// Leaves the own mark of a session before it ends, if its creation may still be repeated. If the store
    /// fails, a background retry writes the mark, and ends the session if it was created again.
    pub(crate) async fn mark_if_recent(&self, session: &Session, cause: Cause) {
        if self.now_ms().saturating_sub(session.created_at_ms) >= REQUEST_KEPT_MS {
            return;
        }
        if let Err(error) = self.mark_early_end(session.handle).await {
            tracing::warn!(session = %session.handle, error = &error as &dyn std::error::Error, "a session ends, but its mark could not be written yet");
            self.mark_early_end_later(session.handle, cause);
        }
    }

    /// Writes a session's own mark in the background, and then ends the session if it exists.
    pub(crate) fn mark_early_end_later(&self, handle: Handle, cause: Cause) {
        let what = "the mark of a session that ended soon after it began";
        self.retry_later(what, self.clone(), move |session_store| async move {
            session_store.mark_early_end(handle).await?;
            session_store.remove(handle, cause).await.map(|_removed| ())
        });
    }

    /// Leaves the own mark of a session that ended soon after its creation, or was never created.
    pub(crate) async fn mark_early_end(&self, handle: Handle) -> Result<(), SessionsError> {
        let now_ms = self.now_ms();
        self.write_mark(early_end_name(handle), now_ms, "", REQUEST_KEPT_MS)
            .await
    }

    /// Whether the session of this handle has its own mark: its creation must not be repeated.
    pub(crate) async fn has_early_end_mark(&self, handle: Handle) -> Result<bool, SessionsError> {
        Ok(self.store().load(early_end_name(handle)).await?.is_some())
    }

    /// Whether a mark of these lists has a time of at least `since_ms` and applies to this user. One round trip.
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

    /// The content of a mark. If this replica lacks its key, the time of the write counts, and the mark applies
    /// to every user.
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
        let note = mark_note(at_ms, subject);
        let merge = |there: &Record| self.open_mark(name, there).merged_with(at_ms, subject);
        match self.write_note(MARK, name, &note, kept_ms, merge).await {
            // Other writers won every attempt, so a mark of theirs exists.
            Err(SessionsError::StaleVersion) => Ok(()),
            written => written.map(|_| ()),
        }
    }
}

fn mark_note(at_ms: u64, subject: &str) -> Vec<u8> {
    [&at_ms.to_be_bytes()[..], subject.as_bytes()].concat()
}

impl EndMark {
    /// The note that ends what this mark and a new one end: the later time counts, and two subjects become every
    /// user. `None` if this mark already does.
    fn merged_with(&self, at_ms: u64, subject: &str) -> Option<Vec<u8>> {
        let subject = if self.subject == subject { subject } else { "" };
        (self.at_ms <= at_ms || self.subject != subject).then(|| mark_note(self.at_ms.max(at_ms), subject))
    }

    /// Whether it ends a session of `subject`: its time is at least `since_ms`, or `before` does not contain it.
    pub(crate) fn ends(&self, subject: &str, since_ms: u64, before: Option<&[Option<EndMark>]>) -> bool {
        let concerns = self.subject.is_empty() || self.subject == subject;
        let is_new = before.is_some_and(|before| !before.iter().flatten().any(|known| known == self));
        concerns && (is_new || self.at_ms >= since_ms)
    }
}

fn mark_name(index: Name) -> Name {
    index::hashed(&[b"mark", index.digits().as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_loses_nothing_when_another_one_is_written() {
        let mark = |subject: &str| EndMark {
            version: 1,
            at_ms: 5_000,
            subject: subject.to_owned(),
        };
        for (subject, new, merged) in [
            ("alice", (6_000, "alice"), Some((6_000, "alice"))),
            ("alice", (4_000, "alice"), None),
            ("", (4_000, "alice"), None),
            ("", (6_000, "alice"), Some((6_000, ""))),
            ("alice", (4_000, ""), Some((5_000, ""))),
            ("alice", (4_000, "bob"), Some((5_000, ""))),
        ] {
            let expected = merged.map(|(at_ms, subject)| mark_note(at_ms, subject));
            assert_eq!(
                mark(subject).merged_with(new.0, new.1),
                expected,
                "{subject} {new:?}"
            );
        }
    }

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
