//! Notices for a user's next sign-in: of a theft, and what an operator wrote.
//!
//! Invariants
//! - A notice is a sealed record under the name of its user: a time, then its text. A later one replaces it.
//! - The first session that begins after a notice carries it. After that, the notice has no text.
//! - Both kinds are read in one round trip.

use super::SessionStore;
use super::sealed_notes::MARK;
use crate::error::SessionsError;
use crate::session::{Name, OperatorNotice, Session, index};
use crate::store::Record;

/// How long a notice waits for the user's next sign-in: 30 days.
const NOTICE_KEPT_MS: u64 = 30 * 86_400_000;

/// The lifetime of the record that replaces a notice after the user was informed.
const CONFIRMED_KEPT_MS: u64 = 1_000;

/// A client used a copy of a session's cookie, so the session ended. The notice's text is the subject.
const THEFT: &[u8] = b"theft";

/// An operator ended sessions, and wrote the text of the notice.
const OPERATOR: &[u8] = b"operator notice";

/// The notices that a user has not read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingNotices {
    /// When a stolen session ended, in Unix milliseconds.
    pub(crate) theft_at_ms: Option<u64>,
    /// What an operator wrote.
    pub(crate) operator: Option<OperatorNotice>,
}

impl SessionStore {
    /// Leaves the notice of a theft.
    pub(crate) async fn note_theft(&self, issuer: &str, subject: &str) -> Result<(), SessionsError> {
        let name = notice_name(THEFT, issuer, subject);
        self.write_notice(name, self.now_ms(), subject).await
    }

    /// Leaves what an operator wrote for the user of a session. If the store fails, a background retry writes it.
    pub(crate) async fn leave_operator_notice(&self, session: &Session, text: &str) {
        let name = notice_name(OPERATOR, &session.issuer, &session.subject);
        let at_ms = self.now_ms();
        if self.write_notice(name, at_ms, text).await.is_err() {
            let context = (self.clone(), text.to_owned());
            let write = move |(session_store, text): (Self, String)| async move {
                session_store.write_notice(name, at_ms, &text).await
            };
            self.retry_later("the notice of an operator", context, write);
        }
    }

    /// The notices that the user has not read yet. One round trip.
    pub(crate) async fn pending_notices(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<PendingNotices, SessionsError> {
        let names = [THEFT, OPERATOR].map(|kind| notice_name(kind, issuer, subject));
        let mut loaded = self.store().load_many(&names).await?.into_iter();
        let mut next = || {
            let record = loaded.next().transpose()?.flatten();
            let read = record.and_then(|record| self.open_notice(&record));
            Ok::<_, SessionsError>(read.filter(|(_, text)| !text.is_empty()))
        };
        Ok(PendingNotices {
            theft_at_ms: next()?.map(|(at_ms, _)| at_ms),
            operator: next()?.map(|(at_ms, text)| OperatorNotice { at_ms, text }),
        })
    }

    /// Records that the user was informed. Later notices stay.
    pub(crate) async fn confirm_notices(
        &self,
        issuer: &str,
        subject: &str,
        read: &PendingNotices,
    ) -> Result<(), SessionsError> {
        let operator_at_ms = read.operator.as_ref().map(|notice| notice.at_ms);
        for (kind, at_ms) in [(THEFT, read.theft_at_ms), (OPERATOR, operator_at_ms)] {
            let Some(at_ms) = at_ms else { continue };
            let (name, confirmed) = (notice_name(kind, issuer, subject), at_ms.to_be_bytes());
            let merge = |there: &Record| {
                let is_same = self.open_notice(there).is_some_and(|(known, _)| known == at_ms);
                is_same.then(|| confirmed.to_vec())
            };
            self.write_note(MARK, name, &confirmed, CONFIRMED_KEPT_MS, merge)
                .await?;
        }
        Ok(())
    }

    async fn write_notice(&self, name: Name, at_ms: u64, text: &str) -> Result<(), SessionsError> {
        let note = [&at_ms.to_be_bytes()[..], text.as_bytes()].concat();
        let merge = |there: &Record| {
            let is_later = self.open_notice(there).is_none_or(|(known, _)| known <= at_ms);
            is_later.then(|| note.clone())
        };
        self.write_note(MARK, name, &note, NOTICE_KEPT_MS, merge)
            .await
            .map(|_| ())
    }

    /// The time and text of a notice; `None` if this replica lacks its key.
    fn open_notice(&self, record: &Record) -> Option<(u64, String)> {
        let note = self.vault().open_note(MARK, record.name, &record.payload).ok()?;
        let (at_ms, text) = note.split_first_chunk()?;
        let text = String::from_utf8_lossy(text).into_owned();
        Some((u64::from_be_bytes(*at_ms), text))
    }
}

fn notice_name(kind: &[u8], issuer: &str, subject: &str) -> Name {
    let person = index::by_subject(issuer, subject);
    index::hashed(&[kind, person.digits().as_bytes()])
}
