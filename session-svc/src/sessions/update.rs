//! Replaces a session's user claims, or the attributes that callers store in the session.

use super::{Sessions, SessionsError};
use crate::session::change::ChangeKind;
use crate::session::{ApiTokens, Claims, Handle, Session};

/// The values to replace.
#[derive(Clone, Debug, Default)]
pub struct SessionUpdate {
    /// The new user claims; `None` keeps the current ones.
    pub user: Option<Claims>,
    /// The new attributes; `None` keeps the current ones.
    pub attributes: Option<Claims>,
    /// The session version that the caller has read; `None` accepts any version.
    pub version: Option<u64>,
}

impl Sessions {
    /// Replaces claims or attributes. Returns `StaleVersion` if the session no longer has the given version. If
    /// the session would be too large, drops its ID token and its API tokens (callers can request new ones).
    pub async fn update(&self, handle: Handle, update: SessionUpdate) -> Result<Session, SessionsError> {
        let session = self.session_store.load(handle).await?;
        let can_be_smaller = !session.tokens.api.is_empty() || session.tokens.id_token.is_some();
        match self.write_update(session.clone(), &update, false).await {
            Err(SessionsError::TooLarge { .. }) if can_be_smaller => {
                self.write_update(session, &update, true).await
            }
            written => written,
        }
    }

    async fn write_update(
        &self,
        session: Session,
        update: &SessionUpdate,
        makes_smaller: bool,
    ) -> Result<Session, SessionsError> {
        let mut refused = None;
        let edit = |session: &mut Session| match update.apply(session) {
            Ok(()) => {
                if makes_smaller {
                    session.tokens.api = ApiTokens::default();
                    session.tokens.id_token = None;
                }
                true
            }
            Err(error) => {
                refused = Some(error);
                false
            }
        };
        let (session, _) = self
            .session_store
            .edit(session, ChangeKind::Changed, Some(self.limits.max_bytes), edit)
            .await?;
        refused.map_or(Ok(session), Err)
    }
}

impl SessionUpdate {
    fn apply(&self, session: &mut Session) -> Result<(), SessionsError> {
        if self.version.is_some_and(|version| version != session.version) {
            return Err(SessionsError::StaleVersion);
        }
        if let Some(user) = &self.user {
            if user.subject().as_deref() != Some(session.subject.as_str()) {
                return Err(SessionsError::Invalid {
                    field: "user.sub",
                    problem: "the user of a session cannot change",
                });
            }
            session.user = user.clone();
        }
        if let Some(attributes) = &self.attributes {
            session.attributes = attributes.clone();
        }
        Ok(())
    }
}
