//! One attempt to get newer tokens: by holding the lease, or by waiting for whoever does.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::{Instant, sleep};

use super::Refresher;
use super::measures::FlightOutcome;
use crate::session::id::encode_hex;
use crate::session::{Handle, Session, State};
use crate::sessions::SessionsError;
use crate::sessions::ports::RenewError;
use crate::store::Lease;

/// A lease is prolonged this many times within its life: all but one may fail.
const RENEWALS_PER_LEASE: u32 = 3;

/// A flight waits for other replicas this many leases long: for several holders that die one after another.
const LEASES_WAITED: u32 = 3;

/// How long the store may be away while a flight waits: longer than a failover takes, shorter than callers wait.
const STORE_PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two questions to a store that is away.
const STORE_PAUSE: Duration = Duration::from_millis(100);

/// Random bytes in the name of a lease's holder.
const HOLDER_BYTES: usize = 8;

/// What came of holding the lease; nothing if it may have run out before the provider was asked, and somebody else
/// may be asking.
pub(super) type Flown = Option<Result<Session, RenewError>>;

/// Until when a lease is certainly held, by this process's own monotonic clock.
pub(super) struct Held(Mutex<Instant>);

impl Held {
    /// Counted from before the lease was asked for, so that it never ends later than the store thinks.
    fn from(asked: Instant, lease: Duration) -> Self {
        Self(Mutex::new(asked + lease))
    }

    fn prolong(&self, asked: Instant, lease: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = asked + lease;
    }

    /// Whether nobody else can have the lease yet.
    pub(super) fn is_certain(&self) -> bool {
        Instant::now() < *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much longer a flight waits for others and for the store.
struct Patience {
    until: Instant,
    store_away_since: Option<Instant>,
}

impl Patience {
    /// Passes over a store that is away, for a while.
    async fn bear(&mut self, error: SessionsError) -> Result<(), RenewError> {
        let error = renew_error(error);
        let since = *self.store_away_since.get_or_insert_with(Instant::now);
        if error != RenewError::StoreUnavailable || since.elapsed() >= STORE_PATIENCE {
            return Err(error);
        }
        sleep(STORE_PAUSE).await;
        Ok(())
    }
}

impl Refresher {
    /// Gives the session once its tokens are newer than `generation`.
    pub(super) async fn fly(&self, handle: Handle, generation: u64) -> Result<Session, RenewError> {
        let outcome = self.wait_or_ask(handle, generation).await;
        match &outcome {
            Err(RenewError::Missing) => self.measures.flight(FlightOutcome::Ended),
            Err(RenewError::StoreUnavailable) => self.measures.flight(FlightOutcome::Store),
            Err(RenewError::Internal) => self.measures.flight(FlightOutcome::Fault),
            // Counted where it is known which of several it is.
            Ok(_) | Err(RenewError::Refused | RenewError::ProviderUnavailable) => {}
        }
        outcome
    }

    async fn wait_or_ask(&self, handle: Handle, generation: u64) -> Result<Session, RenewError> {
        let name = format!("refresh:{handle}");
        let holder = holder()?;
        let mut patience = Patience {
            until: Instant::now() + self.lease * LEASES_WAITED,
            store_away_since: None,
        };
        let mut awaiting = None;
        loop {
            if awaiting.is_some() {
                match self.keeper.load(handle).await {
                    Ok(session) => {
                        if let Some(outcome) = self.settled_by_another(session, generation) {
                            return outcome;
                        }
                    }
                    Err(error) => patience.bear(error).await?,
                }
            }
            let asked = Instant::now();
            match self
                .keeper
                .store()
                .acquire_lease(&name, &holder, self.lease)
                .await
            {
                Ok(Some(lease)) => {
                    let held = Held::from(asked, self.lease);
                    if let Some(outcome) = self.fly_with(lease, held, handle, generation).await {
                        return outcome;
                    }
                }
                Ok(None) => patience.store_away_since = None,
                Err(error) => patience.bear(error.into()).await?,
            }
            if Instant::now() >= patience.until {
                tracing::warn!(session = %handle, "another replica has been refreshing for too long");
                self.measures.flight(FlightOutcome::Transient);
                return Err(RenewError::ProviderUnavailable);
            }
            match &mut awaiting {
                // What was written before this moment is not told: looked at once more before waiting.
                None => awaiting = Some(self.wakes.listen(handle)),
                Some(awaiting) => awaiting.wait().await,
            }
        }
    }

    /// Refreshes while the lease is prolonged, and gives it back.
    async fn fly_with(&self, lease: Lease, held: Held, handle: Handle, generation: u64) -> Flown {
        let refreshing = async {
            let session = match self.keeper.load(handle).await {
                Ok(session) => session,
                Err(error) => return Some(Err(renew_error(error))),
            };
            match self.settled_by_another(session.clone(), generation) {
                outcome @ Some(_) => outcome,
                None => self.grant(session, &held).await,
            }
        };
        let flown = tokio::select! {
            flown = refreshing => flown,
            never = self.prolong(&lease, &held, handle) => match never {},
        };
        if let Err(error) = self.keeper.store().release_lease(&lease).await {
            tracing::warn!(session = %handle, %error, "the lease of a refresh runs out by itself");
        }
        flown
    }

    async fn prolong(&self, lease: &Lease, held: &Held, handle: Handle) -> std::convert::Infallible {
        loop {
            sleep(self.lease / RENEWALS_PER_LEASE).await;
            let asked = Instant::now();
            match self.keeper.store().renew_lease(lease, self.lease).await {
                Ok(true) => held.prolong(asked, self.lease),
                // What is under way is finished all the same: the provider may have rotated already, and the
                // write is fenced by the generation of the tokens.
                Ok(false) => tracing::warn!(session = %handle, "the lease of a refresh ran out"),
                Err(error) => {
                    tracing::warn!(session = %handle, %error, "the lease of a refresh is not prolonged");
                }
            }
        }
    }

    fn settled_by_another(&self, session: Session, generation: u64) -> Option<Result<Session, RenewError>> {
        let outcome = settled(session, generation)?;
        self.measures.flight(FlightOutcome::Joined);
        Some(outcome)
    }
}

/// What there is to say about a session without asking the provider: nothing while an answer waits to be judged.
pub(super) fn settled(session: Session, generation: u64) -> Option<Result<Session, RenewError>> {
    if session.state == State::NeedsSignIn || session.tokens.refresh.is_none() {
        return Some(Err(RenewError::Refused));
    }
    let is_newer = session.tokens.generation > generation && session.tokens.unjudged.is_none();
    is_newer.then_some(Ok(session))
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
