//! Replacing what a session says about its person, or what callers keep with it.

use super::keeper::Edit;
use super::{Sessions, SessionsError};
use crate::session::change::Kind;
use crate::session::{Claims, Handle, Session};

/// What to replace.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The new claims about the person; `None` leaves them.
    pub user: Option<Claims>,
    /// The new attributes; `None` leaves them.
    pub attributes: Option<Claims>,
    /// The version the caller has read; `None` for whatever it is.
    pub version: Option<u64>,
}

impl Sessions {
    /// Replaces claims or attributes. `StaleVersion` if the session changed since the version given.
    pub async fn update(&self, handle: Handle, update: Update) -> Result<Session, SessionsError> {
        let session = self.keeper.load(handle).await?;
        let edit = |session: &mut Session| {
            if update.version.is_some_and(|version| version != session.version) {
                return Err(SessionsError::StaleVersion);
            }
            if let Some(user) = &update.user {
                if user.subject().as_deref() != Some(session.subject.as_str()) {
                    return Err(SessionsError::Invalid {
                        field: "user.sub",
                        problem: "the person of a session cannot change",
                    });
                }
                session.user = user.clone();
            }
            if let Some(attributes) = &update.attributes {
                session.attributes = attributes.clone();
            }
            Ok(Edit::Write)
        };
        let (session, _) = self
            .keeper
            .edit(session, Kind::Changed, Some(self.limits.max_bytes), edit)
            .await?;
        Ok(session)
    }
}
