//! One attempt to get newer tokens: by holding the lease, or by waiting for its holder.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis::random;
use tokio::time::{Instant, sleep};

use super::Refresher;
use super::flights::{FlightEntry, FlightResult};
use super::measures::FlightOutcome;
use super::ports::TokenRefreshError;
use super::record::RefreshRecord;
use super::token_request::TokenRequest;
use crate::error::SessionsError;
use crate::session::{Handle, Session};
use crate::session_store::SealError;
use crate::store::{Lease, StoreError};

/// A lease is renewed this many times within its lifetime: all but one may fail.
const RENEWALS_PER_LEASE: u32 = 3;

/// The first term of a lease is its lifetime divided by this; the flight renews it before use. So a request
/// that the store executes late, after its flight ended, blocks other replicas no longer than one term.
const FIRST_TERMS_PER_LEASE: u32 = 3;

/// A flight waits for other replicas this many leases long: several holders may die one after another.
const LEASES_WAITED: u32 = 3;

/// How long the store may be unavailable while a flight waits: longer than a failover takes.
const STORE_OUTAGE_MAX: Duration = Duration::from_secs(10);

/// Pause between two requests to a store that is unavailable.
const STORE_PAUSE: Duration = Duration::from_millis(100);

/// Reads of a session that others write at the same time. Each conflict means that another writer succeeded.
const READS: usize = 8;

/// Pause between two reads of the session: short during a provider's usual response time, so that callers at
/// other replicas receive the token within a few hundredths of a second. Longer after that.
const OFTEN_PAUSE: Duration = Duration::from_millis(25);
const SELDOM_PAUSE: Duration = Duration::from_millis(500);

/// How long a flight uses the short pause.
const POLLS_OFTEN: Duration = Duration::from_secs(2);

/// Random bytes in the name of a process.
const NAME_BYTES: usize = 8;

/// The outcome of an attempt: the session with new tokens from this attempt, or an error.
pub(super) type LeadOutcome = Result<Session, LeadError>;

/// Why this attempt itself brought no tokens.
#[derive(Debug)]
pub(super) enum LeadError {
    /// The outcome to record, and the result for the callers.
    Concluded(FlightOutcome, FlightResult),
    /// The lease may have expired before the request to the provider, and another replica may be sending one.
    LeaseLost,
    /// No caller waits any more, and no request was sent.
    Abandoned,
}

impl From<TokenRefreshError> for LeadError {
    fn from(error: TokenRefreshError) -> Self {
        let outcome = match error {
            TokenRefreshError::Missing => FlightOutcome::Ended,
            TokenRefreshError::Refused => FlightOutcome::Refused,
            TokenRefreshError::Rejected
            | TokenRefreshError::ExchangeRefused
            | TokenRefreshError::SubjectRefused
            | TokenRefreshError::IdTokenExpired => FlightOutcome::Rejected,
            TokenRefreshError::TargetRefused | TokenRefreshError::ScopeRefused => FlightOutcome::Target,
            TokenRefreshError::ProviderUnavailable => FlightOutcome::Transient,
            TokenRefreshError::StoreUnavailable | TokenRefreshError::UnknownKey(_) => FlightOutcome::Store,
            TokenRefreshError::Internal => FlightOutcome::Fault,
        };
        Self::Concluded(outcome, Err(error))
    }
}

impl From<SessionsError> for LeadError {
    fn from(error: SessionsError) -> Self {
        refresh_error(error).into()
    }
}

/// Until when a lease is certainly held, by this process's own monotonic clock.
pub(super) struct LeaseExpiry(Mutex<Instant>);

impl LeaseExpiry {
    /// Counted from before the lease was requested, so that it never ends later than in the store.
    fn from(sent_at: Instant, lease: Duration) -> Self {
        Self(Mutex::new(sent_at + lease))
    }

    fn prolong(&self, sent_at: Instant, lease: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sent_at + lease;
    }

    /// Whether no other replica can have the lease yet.
    pub(super) fn is_certain(&self) -> bool {
        Instant::now() < *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much longer a flight waits for others and for the store.
struct WaitLimit {
    until: Instant,
    store_away_since: Option<Instant>,
}

impl WaitLimit {
    /// Tolerates an unavailable store for a while.
    async fn tolerate(&mut self, entry: &FlightEntry, error: SessionsError) -> Result<(), TokenRefreshError> {
        let error = refresh_error(error);
        let since = *self.store_away_since.get_or_insert_with(Instant::now);
        if error != TokenRefreshError::StoreUnavailable || since.elapsed() >= STORE_OUTAGE_MAX {
            return Err(error);
        }
        entry.set_store_away(true);
        sleep(STORE_PAUSE).await;
        Ok(())
    }
}

/// One attempt, shared by all calls of this process that want these tokens refreshed.
pub(super) struct RefreshFlight {
    pub(super) refresher: Refresher,
    pub(super) entry: FlightEntry,
    pub(super) wanted: TokenRequest,
    pub(super) handle: Handle,
    pub(super) record: RefreshRecord,
}

impl RefreshFlight {
    /// Wakes all waiting callers with the refreshed session, or with the error.
    pub(super) async fn run(self) {
        let (outcome, result) = match self.lead_or_wait().await {
            Ok(session) => (FlightOutcome::Refreshed, Ok(Arc::new(session))),
            Err(LeadError::Concluded(outcome, result)) => (outcome, result),
            Err(LeadError::Abandoned | LeadError::LeaseLost) => return,
        };
        self.record_outcome(outcome);
        self.entry.publish(result);
    }

    /// Counts and records the outcome of the attempt.
    fn record_outcome(&self, outcome: FlightOutcome) {
        let target = self.wanted.target().map(|(target, _)| target);
        self.refresher.measures.flight(outcome, target.is_some());
        self.record.write(outcome, target);
    }

    /// Returns the session as soon as its tokens are newer.
    async fn lead_or_wait(&self) -> LeadOutcome {
        let (session_store, lease_for) = (&self.refresher.session_store, self.refresher.lease);
        let name = self.wanted.lease(self.handle);
        let holder = self.holder()?;
        let began = Instant::now();
        let mut wait_limit = WaitLimit {
            until: began + lease_for * LEASES_WAITED,
            store_away_since: None,
        };
        let mut waits = false;
        loop {
            if waits {
                match session_store.load(self.handle).await {
                    Ok(session) => self.join_another(session)?,
                    Err(error) => wait_limit.tolerate(&self.entry, error).await?,
                }
            }
            let (sent_at, term) = (Instant::now(), lease_for / FIRST_TERMS_PER_LEASE);
            // Whether an abandoned request may still acquire the lease.
            let unanswered = match session_store.store().acquire_lease(name, &holder, term).await {
                Ok(Some(lease)) => {
                    self.entry.set_store_away(false);
                    match self.lead(lease, LeaseExpiry::from(sent_at, term)).await {
                        Err(LeadError::LeaseLost) => {}
                        outcome => return outcome,
                    }
                    false
                }
                Ok(None) => {
                    self.entry.set_store_away(false);
                    wait_limit.store_away_since = None;
                    false
                }
                // Waiting does not empty a full store.
                Err(StoreError::Full) => return Err(TokenRefreshError::StoreUnavailable.into()),
                Err(error) => {
                    wait_limit.tolerate(&self.entry, error.into()).await?;
                    true
                }
            };
            if Instant::now() >= wait_limit.until {
                tracing::warn!(session = %self.handle, "another replica has been refreshing for too long");
                return Err(TokenRefreshError::ProviderUnavailable.into());
            }
            if waits {
                let is_often = began.elapsed() < POLLS_OFTEN;
                let pause = if is_often { OFTEN_PAUSE } else { SELDOM_PAUSE };
                tokio::select! {
                    () = sleep(pause) => {}
                    () = self.entry.abandoned(), if !unanswered => {}
                }
            }
            waits = true;
            if !unanswered && self.entry.leave_if_abandoned() {
                return Err(LeadError::Abandoned);
            }
        }
    }

    /// The holder name of the lease. It is stable: if the store executes an abandoned request late, the lease
    /// still belongs to this flight.
    fn holder(&self) -> Result<String, TokenRefreshError> {
        let process = match self.refresher.name.get() {
            Some(name) => name,
            None => {
                let bytes = random::bytes::<NAME_BYTES>().map_err(|_none| TokenRefreshError::Internal)?;
                self.refresher
                    .name
                    .get_or_init(|| base16ct::lower::encode_string(&bytes))
            }
        };
        Ok(self.wanted.holder(process))
    }

    /// Refreshes while the lease is renewed, and releases it.
    async fn lead(&self, lease: Lease, held: LeaseExpiry) -> LeadOutcome {
        let session_store = &self.refresher.session_store;
        let sent_at = Instant::now();
        match session_store
            .store()
            .renew_lease(&lease, self.refresher.lease)
            .await
        {
            Ok(true) => held.prolong(sent_at, self.refresher.lease),
            // It has expired or may expire soon: acquire it again.
            Ok(false) | Err(_) => return Err(LeadError::LeaseLost),
        }
        let outcome = tokio::select! {
            outcome = self.refresh(&held) => outcome,
            never = self.prolong(&lease, &held) => match never {},
        };
        if let Err(error) = session_store.store().release_lease(&lease).await {
            tracing::warn!(session = %self.handle, error = &error as &dyn std::error::Error, "the lease of a refresh was not released and expires");
        }
        outcome
    }

    /// Requests new tokens, unless newer ones exist or the store would not accept them: the provider returns
    /// a rotated token only once.
    async fn refresh(&self, held: &LeaseExpiry) -> LeadOutcome {
        let session_store = &self.refresher.session_store;
        for _ in 0..READS {
            let session = session_store.load(self.handle).await?;
            self.join_another(session.clone())?;
            // Another write may come between: then read the session again.
            if session_store.rewrite(&session).await? {
                return self.grant(session, held).await;
            }
        }
        Err(TokenRefreshError::StoreUnavailable.into())
    }

    async fn prolong(&self, lease: &Lease, held: &LeaseExpiry) -> std::convert::Infallible {
        let (session_store, lease_for) = (&self.refresher.session_store, self.refresher.lease);
        loop {
            sleep(lease_for / RENEWALS_PER_LEASE).await;
            let sent_at = Instant::now();
            match session_store.store().renew_lease(lease, lease_for).await {
                Ok(true) => held.prolong(sent_at, lease_for),
                // Let the running request finish: the provider may have rotated already, and the write
                // compares the generation of the tokens.
                Ok(false) => tracing::warn!(session = %self.handle, "the lease of a refresh expired"),
                Err(error) => {
                    tracing::warn!(session = %self.handle, error = &error as &dyn std::error::Error, "the lease of a refresh could not be renewed");
                }
            }
        }
    }

    /// Ends the attempt with the outcome of another one, if the session shows one.
    fn join_another(&self, session: Session) -> Result<(), LeadError> {
        match self.wanted.outcome_in(session) {
            None => Ok(()),
            Some(result) => Err(LeadError::Concluded(FlightOutcome::Joined, result.map(Arc::new))),
        }
    }
}

/// Converts an error of a session read or write to an error of a refresh.
pub(super) fn refresh_error(error: SessionsError) -> TokenRefreshError {
    match error {
        SessionsError::Missing => TokenRefreshError::Missing,
        SessionsError::Store(StoreError::Unavailable(_) | StoreError::Full) | SessionsError::StaleVersion => {
            TokenRefreshError::StoreUnavailable
        }
        SessionsError::Seal(SealError::UnknownKey(key)) => TokenRefreshError::UnknownKey(key),
        error => {
            tracing::error!(error = &error as &dyn std::error::Error, "a refresh failed");
            TokenRefreshError::Internal
        }
    }
}
