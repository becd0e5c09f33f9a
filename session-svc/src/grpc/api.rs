//! The shared state of every method of the session API.

use session_proto::v1;
use tokio_util::sync::CancellationToken;

use super::call_context::CallContext;
use super::resource;
use crate::receiver::SignalReceiver;
use crate::session::Session;
use crate::sessions::Sessions;

/// The service.
#[derive(Clone)]
pub(crate) struct Api {
    pub(super) sessions: Sessions,
    pub(super) receiver: Option<SignalReceiver>,
    pub(super) calls: CallContext,
    /// Cancelled when streams must end.
    pub(super) draining: CancellationToken,
}

impl Api {
    /// The message of a session.
    pub(super) fn resource(&self, session: &Session) -> v1::Session {
        resource::session(session, self.sessions.lifetime())
    }
}
