//! What the use cases need from the outside, besides a store and what seals.

use async_trait::async_trait;
use tokio::time::Instant;

use crate::keeper::KeyId;
use crate::session::{ApiTarget, ApiToken, ApiTokenSource, Cause, Name, RevocableToken, Session};

/// A caller that waits for tokens, and since when.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCaller<'a> {
    /// The caller's identity as audit records show it; empty if it has none.
    pub caller: &'a str,
    /// When its call began.
    pub since: Instant,
}

/// Refreshes tokens at the provider (RFC 6749, section 6).
#[async_trait]
pub trait TokenRefresh: Send + Sync + 'static {
    /// Gives the session after a refresh that is newer than the one `seen`; however many calls wait, one grant is made.
    /// A call waits for as long as the provider has for an answer at most; what comes later is there for the next one.
    async fn refresh(
        &self,
        seen: Session,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<Session, TokenRefreshError>;

    /// What tokens for single APIs are requested with at this issuer.
    fn api_token_source(&self, issuer: &str) -> ApiTokenSource;

    /// Gives a token for an API newer than the one in the session `seen`; however many calls wait, one grant is made.
    async fn api_token(
        &self,
        seen: &Session,
        target: &ApiTarget,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<ApiToken, TokenRefreshError>;

    /// Refreshes tokens that are still good, later and in the background; however many calls need it, one grant is
    /// made. `caller` is whose call showed that it is time.
    fn refresh_later(&self, seen: Session, caller: &str);
}

/// Revokes tokens at the provider (RFC 7009).
#[async_trait]
pub trait TokenRevocation: Send + Sync + 'static {
    /// Notes in the store that tokens of a session that is about to end are to be revoked at its issuer, so that some replica
    /// does it whatever becomes of this one. A note that cannot be written holds nothing up.
    async fn note_revocation(&self, session: &Session, tokens: Vec<RevocableToken>) -> RevocationNote;

    /// Revokes what was noted, later and in the background.
    fn revoke_later(&self, note: RevocationNote);
}

/// Tokens that are to be revoked.
#[derive(Clone, Debug)]
pub struct RevocationNote {
    /// Name of the note's record.
    pub name: Name,
    /// Issuer identifier of the provider.
    pub issuer: String,
    /// What is to be revoked, in this order.
    pub tokens: Vec<RevocableToken>,
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
