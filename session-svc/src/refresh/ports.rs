//! What use cases and refreshes tell each other, and what both need for events to other systems.

use async_trait::async_trait;
use tokio::time::Instant;

use crate::keeper::KeyId;
use crate::session::{Cause, Session};

/// A caller that waits for tokens, and since when.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCaller<'a> {
    /// The caller's identity as audit records show it; empty if it has none.
    pub caller: &'a str,
    /// When its call began.
    pub since: Instant,
}

/// Stores notes of endings for other systems, so that another replica can report them if this one dies. A note that cannot be written
/// delays nothing.
#[async_trait]
pub trait SignalOutbox: Send + Sync + 'static {
    /// A session is about to end: it is reported once it is gone.
    async fn note_ending(&self, ending: SessionEnding<'_>);

    /// A session that was about to end is gone.
    fn wake(&self);
}

/// A session that is about to end.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnding<'a> {
    /// As it was last seen.
    pub session: &'a Session,
    /// Why.
    pub cause: Cause,
    /// The session that takes its place.
    pub replaced_by: Option<&'a Session>,
}

/// Why tokens were not refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefreshError {
    /// The session ended meanwhile.
    #[error("the session ended")]
    Missing,
    /// The provider refused the refresh token for good.
    #[error("the provider refused to refresh the tokens")]
    Refused,
    /// The provider refused the request, this client for one, or gave nothing usable: the refresh token may still be good.
    #[error("the provider refused the request for new tokens")]
    Rejected,
    /// The provider issues no token for this audience or resource.
    #[error("the provider issues no token for this audience or resource")]
    TargetRefused,
    /// The provider issues no token with this scope.
    #[error("the provider issues no token with this scope")]
    ScopeRefused,
    /// The provider refused to exchange the access token, or gave nothing usable.
    #[error("the provider refused to exchange the access token")]
    ExchangeRefused,
    /// The provider does not take the session's access token for an exchange.
    #[error("the provider does not take the access token for an exchange")]
    SubjectRefused,
    /// The provider could not be reached this time, or has not answered yet; nothing is lost.
    #[error("the provider could not be asked to refresh the tokens")]
    ProviderUnavailable,
    /// The store could not be reached, or is full; nothing is lost.
    #[error("the session store could not be asked")]
    StoreUnavailable,
    /// The session is sealed with a key this replica does not have; nothing is lost.
    #[error("the session needs key {0}, which this replica does not have")]
    UnknownKey(KeyId),
    /// A fault of ours; the log has it.
    #[error("the refresh failed on a fault of the service")]
    Internal,
}

impl TokenRefreshError {
    /// Whether the provider refused the API, the scope or the exchange, and not the session.
    pub(crate) fn is_about_target(self) -> bool {
        matches!(
            self,
            Self::TargetRefused | Self::ScopeRefused | Self::ExchangeRefused | Self::SubjectRefused
        )
    }

    /// Whether the tokens of before are as good as they were: they are served while they have not expired.
    pub(crate) fn keeps_tokens(self) -> bool {
        matches!(
            self,
            Self::Rejected | Self::ProviderUnavailable | Self::StoreUnavailable
        )
    }
}
