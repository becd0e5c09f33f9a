//! One attempt to get newer tokens: by holding the lease, or by waiting for whoever does.

use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::{Instant, sleep};

use super::Refresher;
use crate::session::id::encode_hex;
use crate::session::{Handle, Session, State};
use crate::sessions::SessionsError;
use crate::sessions::ports::RenewError;
use crate::store::Lease;

/// How long a lease lasts without being prolonged: what others wait when its holder dies.
const LEASE: Duration = Duration::from_secs(15);

/// How often a lease is prolonged: twice within its life may fail.
const LEASE_RENEWAL: Duration = Duration::from_secs(5);

/// How long a flight waits for another replica in all: three times what a dead holder costs.
const MAX_WAIT: Duration = Duration::from_secs(45);

/// Pauses between two looks at a session that another replica refreshes: the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Random bytes in the name of a lease's holder.
const HOLDER_BYTES: usize = 8;

impl Refresher {
    /// Gives the session once its tokens are newer than `generation`.
    pub(super) async fn fly(&self, handle: Handle, generation: u64) -> Result<Session, RenewError> {
        let name = format!("refresh:{handle}");
        let holder = holder()?;
        let deadline = Instant::now() + MAX_WAIT;
        let mut pause = FIRST_PAUSE;
        loop {
            let lease = self.keeper.store().acquire_lease(&name, &holder, LEASE).await;
            match lease.map_err(|error| renew_error(error.into()))? {
                Some(lease) => return self.fly_with(lease, handle, generation).await,
                None => sleep(pause).await,
            }
            let session = self.keeper.load(handle).await.map_err(renew_error)?;
            if let Some(outcome) = settled(session, generation) {
                return outcome;
            }
            if Instant::now() >= deadline {
                tracing::warn!(session = %handle, "another replica has been refreshing for too long");
                return Err(RenewError::ProviderUnavailable);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Refreshes while the lease is prolonged, and gives it back.
    async fn fly_with(&self, lease: Lease, handle: Handle, generation: u64) -> Result<Session, RenewError> {
        let prolonging = async {
            loop {
                sleep(LEASE_RENEWAL).await;
                match self.keeper.store().renew_lease(&lease, LEASE).await {
                    Ok(true) => {}
                    // What is under way is finished all the same: the provider may have rotated already, and the
                    // write is fenced by the generation of the tokens.
                    Ok(false) => tracing::warn!(session = %handle, "the lease of a refresh ran out"),
                    Err(error) => {
                        tracing::warn!(session = %handle, %error, "the lease of a refresh is not prolonged")
                    }
                }
            }
        };
        let refreshing = async {
            let session = self.keeper.load(handle).await.map_err(renew_error)?;
            match settled(session.clone(), generation) {
                Some(outcome) => outcome,
                None => self.grant(session).await,
            }
        };
        let outcome = tokio::select! {
            outcome = refreshing => outcome,
            () = prolonging => Err(RenewError::Internal),
        };
        if let Err(error) = self.keeper.store().release_lease(&lease).await {
            tracing::warn!(session = %handle, %error, "the lease of a refresh runs out by itself");
        }
        outcome
    }
}

/// What there is to say about a session without asking the provider.
fn settled(session: Session, generation: u64) -> Option<Result<Session, RenewError>> {
    if session.tokens.generation > generation {
        return Some(Ok(session));
    }
    (session.state == State::NeedsSignIn || session.tokens.refresh.is_none())
        .then_some(Err(RenewError::Refused))
}

fn holder() -> Result<String, RenewError> {
    let mut bytes = [0; HOLDER_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| RenewError::Internal)?;
    Ok(encode_hex(&bytes))
}

/// What a failure of the use cases below means to whoever wants tokens.
pub(super) fn renew_error(error: SessionsError) -> RenewError {
    match error {
        SessionsError::Missing => RenewError::Missing,
        SessionsError::StoreUnavailable(_) | SessionsError::Full | SessionsError::StaleVersion => {
            RenewError::StoreUnavailable
        }
        SessionsError::RefreshRefused | SessionsError::Refused(_) => RenewError::Refused,
        SessionsError::ProviderUnavailable => RenewError::ProviderUnavailable,
        SessionsError::Invalid { .. }
        | SessionsError::RequestIdReused
        | SessionsError::TooLarge { .. }
        | SessionsError::Unreadable(_)
        | SessionsError::CorruptStore(_)
        | SessionsError::NoRandomness(_)
        | SessionsError::Internal => {
            tracing::error!(error = &error as &dyn std::error::Error, "a refresh failed");
            RenewError::Internal
        }
    }
}
