//! Binding a session to a key of its browser's device.

use super::{Sessions, SessionsError};
use crate::session::change::ChangeKind;
use crate::session::{DeviceBinding, DeviceKey, Handle, Session};

impl Sessions {
    /// Binds a session to a key once. The same key again changes nothing; another key fails with
    /// `BoundToAnotherKey`: otherwise the session's secret alone would be enough to replace the key.
    pub(crate) async fn bind(&self, handle: Handle, key: &DeviceKey) -> Result<Session, SessionsError> {
        let session = self.session_store.load(handle).await?;
        let bound_at_ms = self.now_ms();
        let edit = |session: &mut Session| {
            if session.binding.is_some() {
                return false;
            }
            session.binding = Some(DeviceBinding {
                key: key.clone(),
                bound_at_ms,
            });
            true
        };
        let (session, _) = self
            .session_store
            .edit(session, ChangeKind::Changed, Some(self.limits.max_bytes), edit)
            .await?;
        match &session.binding {
            Some(binding) if binding.key == *key => Ok(session),
            _ => Err(SessionsError::BoundToAnotherKey),
        }
    }
}
