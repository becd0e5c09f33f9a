//! What the use cases need from the outside, besides a store.

use std::error::Error;

use async_trait::async_trait;
use chassis::random::NoRandomness;
use chassis::secret::Secret;
use tokio::time::Instant;

use crate::session::Session;
use crate::session::change::Change;

/// Seals what a store keeps.
pub trait Seal: Send + Sync + 'static {
    /// Seals a session for the record of its handle and version.
    fn seal_session(&self, session: &Session) -> Result<Vec<u8>, SealError>;

    /// Opens the session of the record named, at the version given.
    fn open_session(&self, name: &str, version: u64, sealed: &[u8]) -> Result<Session, SealError>;

    /// Seals a change for publication.
    fn seal_change(&self, change: &Change) -> Result<Vec<u8>, SealError>;

    /// Opens a published change.
    fn open_change(&self, sealed: &[u8]) -> Result<Change, SealError>;

    /// Seals a few bytes for one purpose under one name.
    fn seal_note(&self, purpose: &str, name: &str, note: &[u8]) -> Result<Vec<u8>, SealError>;

    /// Opens what [`Seal::seal_note`] sealed for the same purpose and name.
    fn open_note(&self, purpose: &str, name: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError>;
}

/// Why something could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The operating system gave no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The text could not be sealed.
    #[error("the text could not be sealed")]
    NotWritten,
    /// The text is no text of ours, or was changed, swapped or rolled back.
    #[error("the sealed text was changed, swapped or never ours")]
    NotReadable,
    /// The text was sealed by a newer release in a way this one does not know.
    #[error("the sealed text has a format this release does not know")]
    UnknownFormat,
    /// The key it was sealed with is not in the ring.
    #[error("the sealed text needs a key that is not configured")]
    UnknownKey,
    /// What is inside is not what is written there.
    #[error("the sealed text holds something else than expected")]
    Malformed(#[source] Box<dyn Error + Send + Sync>),
}

/// Who asks for tokens, and since when.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The caller's identity as audit records show it; empty if it has none.
    pub caller: &'a str,
    /// When its call began.
    pub since: Instant,
}

/// Renews tokens at the provider.
#[async_trait]
pub trait Renew: Send + Sync + 'static {
    /// Gives the session after a refresh that is newer than the one `seen`; however many ask, one grant is made. Who asks
    /// waits for as long as the provider has for an answer at most; what comes later is there for the next one.
    async fn refreshed(&self, seen: Session, asking: Asking<'_>) -> Result<Session, RenewError>;

    /// Renews tokens that are still good, later and without telling anybody; however many ask, one grant is made. `caller`
    /// is whose call showed that it is time.
    fn refresh_later(&self, seen: Session, caller: &str);

    /// Notes in the store that the refresh token of a session that is about to end is to be revoked at its issuer (RFC 7009), so that
    /// some replica does it whatever becomes of this one. A note that cannot be written holds nothing up.
    async fn owe_revocation(&self, session: &Session, refresh_token: Secret<String>) -> PendingRevocation;

    /// Revokes what was noted, later and without telling anybody.
    fn settle_later(&self, owed: PendingRevocation);
}

/// A revocation that is owed.
#[derive(Clone, Debug)]
pub struct PendingRevocation {
    /// Name of its note.
    pub name: String,
    /// Issuer identifier of the provider.
    pub issuer: String,
    /// What is to be revoked.
    pub refresh_token: Secret<String>,
}

/// Why tokens were not renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenewError {
    /// The session ended meanwhile.
    #[error("the session ended")]
    Missing,
    /// The provider refused, or gave nothing usable.
    #[error("the provider refused to refresh the tokens")]
    Refused,
    /// The provider could not be asked this time, or has not answered yet; nothing is lost.
    #[error("the provider could not be asked to refresh the tokens")]
    ProviderUnavailable,
    /// The store could not be asked, or has no room; nothing is lost.
    #[error("the session store could not be asked")]
    StoreUnavailable,
    /// A fault of ours; the log has it.
    #[error("the refresh failed on a fault of the service")]
    Internal,
}
