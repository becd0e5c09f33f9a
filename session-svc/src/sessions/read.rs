//! Reading a session, and extending it by use.

use super::{Sessions, SessionsError};
use crate::session::change::ChangeKind;
use crate::session::{Device, Handle, Session};

impl Sessions {
    /// Reads a session without extending it.
    pub async fn get(&self, handle: Handle) -> Result<Session, SessionsError> {
        self.session_store.load(handle).await
    }

    /// Reads several sessions in one round trip to the store, in the order of their handles. Each is opened
    /// only when the iterator reaches it.
    pub(crate) async fn get_many(
        &self,
        handles: &[Handle],
    ) -> Result<impl Iterator<Item = Result<Session, SessionsError>> + use<'_>, SessionsError> {
        self.session_store.load_many(handles).await
    }

    /// Whether `roll` would do more than read the session again: extend it, or refresh tokens that expire
    /// soon.
    pub(crate) fn roll_is_due(&self, session: &Session) -> bool {
        let lifetime = self.session_store.lifetime();
        lifetime.roll_is_due(session.rolled_at_ms, self.session_store.now_ms())
            || self.revalidation_is_due(session)
    }

    /// Reads a session for its browser and extends it if a write is due; also returns whether the idle
    /// deadline moved. Only a failed read fails the call. A failed write is logged and leaves the deadline
    /// unchanged. `caller` is the caller's identity, for the record of a refresh.
    pub async fn roll(
        &self,
        handle: Handle,
        device: Option<Device>,
        caller: &str,
    ) -> Result<(Session, bool), SessionsError> {
        let session = self.session_store.load(handle).await?;
        self.revalidate(&session, caller);
        let lifetime = *self.session_store.lifetime();
        let now_ms = self.session_store.now_ms();
        if !lifetime.roll_is_due(session.rolled_at_ms, now_ms) {
            return Ok((session, false));
        }
        let before_ms = session.expires_at_ms(&lifetime);
        let written = self
            .session_store
            .edit(session.clone(), ChangeKind::Rolled, None, |session| {
                if !lifetime.roll_is_due(session.rolled_at_ms, now_ms) {
                    return false;
                }
                session.rolled_at_ms = now_ms.max(session.rolled_at_ms);
                let seen_on = device.clone().unwrap_or_else(|| session.last_seen_on.clone());
                session.last_seen_on = Device {
                    at_ms: now_ms,
                    ..seen_on
                };
                true
            });
        // Boxed: writes are rare, and otherwise every read would carry their state.
        match Box::pin(written).await {
            Ok((rolled, _)) => {
                let moved = rolled.expires_at_ms(&lifetime) > before_ms;
                Ok((rolled, moved))
            }
            Err(SessionsError::Missing) => Err(SessionsError::Missing),
            Err(error) => {
                tracing::warn!(session = %handle, error = &error as &dyn std::error::Error, "the session could not be extended");
                Ok((session, false))
            }
        }
    }
}
