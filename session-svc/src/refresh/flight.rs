//! One attempt to get newer tokens: by holding the lease, or by waiting for whoever does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis::random;
use tokio::time::{Instant, sleep};

use super::Refresher;
use super::flights::FlightEntry;
use super::measures::FlightOutcome;
use super::record::Record;
use crate::keeper::KeeperError;
use crate::session::{Handle, Session, State};
use crate::sessions::ports::RenewError;
use crate::store::{Lease, StoreError};

/// A lease is prolonged this many times within its life: all but one may fail.
const RENEWALS_PER_LEASE: u32 = 3;

/// A lease is asked for with this part of its life, and prolonged before it is used: a request that is given up and done
/// later, when nobody needs it any more, keeps other replicas waiting no longer.
const FIRST_TERMS_PER_LEASE: u32 = 3;

/// A flight waits for other replicas this many leases long: for several holders that die one after another.
const LEASES_WAITED: u32 = 3;

/// How long the store may be away while a flight waits: longer than a failover takes.
const STORE_PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two questions to a store that is away.
const STORE_PAUSE: Duration = Duration::from_millis(100);

/// Looks at a session that others write at the same time: each look in vain means that somebody's write was done.
const LOOKS: usize = 8;

/// Random bytes in the name of a process.
const NAME_BYTES: usize = 8;

/// What came of holding the lease; nothing if it may have run out before the provider was asked, and somebody else
/// may be asking.
pub(super) type Flown = Option<Result<Session, RenewError>>;

/// Until when a lease is certainly held, by this process's own monotonic clock.
pub(super) struct LeaseExpiry(Mutex<Instant>);

impl LeaseExpiry {
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
struct WaitLimit {
    until: Instant,
    store_away_since: Option<Instant>,
}

impl WaitLimit {
    /// Passes over a store that is away, for a while.
    async fn bear(&mut self, place: &FlightEntry, error: KeeperError) -> Result<(), RenewError> {
        let error = renew_error(error);
        let since = *self.store_away_since.get_or_insert_with(Instant::now);
        if error != RenewError::StoreUnavailable || since.elapsed() >= STORE_PATIENCE {
            return Err(error);
        }
        place.store_is_away(true);
        sleep(STORE_PAUSE).await;
        Ok(())
    }
}

/// One attempt, shared by all of this process who want these tokens renewed.
pub(super) struct Flight {
    pub(super) refresher: Refresher,
    pub(super) place: FlightEntry,
    handle: Handle,
    generation: u64,
    record: Record,
}

impl Flight {
    /// An attempt to get newer tokens than those seen.
    pub(super) fn new(refresher: Refresher, seen: &Session, place: FlightEntry, record: Record) -> Self {
        Self {
            refresher,
            place,
            handle: seen.handle,
            generation: seen.tokens.generation,
            record,
        }
    }

    /// Tells all who wait the session with newer tokens, or why there are none.
    pub(super) async fn fly(self) {
        let outcome = match self.wait_or_ask().await {
            Ok(Some(session)) => Ok(Arc::new(session)),
            // Nobody waits.
            Ok(None) => return,
            Err(error) => Err(error),
        };
        match &outcome {
            Err(RenewError::Missing) => self.came_to(FlightOutcome::Ended),
            Err(RenewError::StoreUnavailable) => self.came_to(FlightOutcome::Store),
            Err(RenewError::Internal) => self.came_to(FlightOutcome::Fault),
            // Told where it is known which of several it is.
            Ok(_) | Err(RenewError::Refused | RenewError::ProviderUnavailable) => {}
        }
        self.place.tell(outcome);
    }

    /// Counts and records what the attempt came to.
    pub(super) fn came_to(&self, outcome: FlightOutcome) {
        self.refresher.measures.flight(outcome);
        self.record.write(outcome);
    }

    /// Gives the session once its tokens are newer; nothing if nobody waits for that any more and nothing was begun.
    async fn wait_or_ask(&self) -> Result<Option<Session>, RenewError> {
        let (keeper, lease_for) = (&self.refresher.keeper, self.refresher.lease);
        let name = format!("refresh:{}", self.handle);
        let holder = self.holder()?;
        let mut patience = WaitLimit {
            until: Instant::now() + lease_for * LEASES_WAITED,
            store_away_since: None,
        };
        let mut awaiting = None;
        loop {
            if awaiting.is_some() {
                match keeper.load(self.handle).await {
                    Ok(session) => {
                        if let Some(outcome) = self.settled_by_another(session) {
                            return outcome.map(Some);
                        }
                    }
                    Err(error) => patience.bear(&self.place, error).await?,
                }
            }
            let (asked, term) = (Instant::now(), lease_for / FIRST_TERMS_PER_LEASE);
            // Whether the lease may be granted to a request that was given up.
            let unanswered = match keeper.store().acquire_lease(&name, &holder, term).await {
                Ok(Some(lease)) => {
                    self.place.store_is_away(false);
                    if let Some(outcome) = self.fly_with(lease, LeaseExpiry::from(asked, term)).await {
                        return outcome.map(Some);
                    }
                    false
                }
                Ok(None) => {
                    self.place.store_is_away(false);
                    patience.store_away_since = None;
                    false
                }
                // Room is not made by waiting.
                Err(StoreError::Full) => return Err(RenewError::StoreUnavailable),
                Err(error) => {
                    patience.bear(&self.place, error.into()).await?;
                    true
                }
            };
            if Instant::now() >= patience.until {
                tracing::warn!(session = %self.handle, "another replica has been refreshing for too long");
                self.came_to(FlightOutcome::Transient);
                return Err(RenewError::ProviderUnavailable);
            }
            match &mut awaiting {
                // What was written before this moment is not told: looked at once more before waiting.
                None => awaiting = Some(self.refresher.wakes.listen(self.handle)),
                Some(awaiting) => tokio::select! {
                    () = awaiting.wait() => {}
                    () = self.place.nobody_waits(), if !unanswered => {}
                },
            }
            if !unanswered && self.place.left_alone() {
                return Ok(None);
            }
        }
    }

    /// By this name the lease is asked for, again and again: a request that was given up and granted later is this
    /// process's own, and of its flights one at a time is about these tokens.
    fn holder(&self) -> Result<String, RenewError> {
        let process = match self.refresher.name.get() {
            Some(name) => name,
            None => {
                let bytes = random::bytes::<NAME_BYTES>().map_err(|_none| RenewError::Internal)?;
                self.refresher
                    .name
                    .get_or_init(|| base16ct::lower::encode_string(&bytes))
            }
        };
        Ok(format!("{process}.{}", self.generation))
    }

    /// Refreshes while the lease is prolonged, and gives it back; nothing if it is not certain to be held.
    async fn fly_with(&self, lease: Lease, held: LeaseExpiry) -> Flown {
        let keeper = &self.refresher.keeper;
        let asked = Instant::now();
        match keeper.store().renew_lease(&lease, self.refresher.lease).await {
            Ok(true) => held.prolong(asked, self.refresher.lease),
            // It may have run out, or run out soon: it is asked for once more.
            Ok(false) | Err(_) => return None,
        }
        let flown = tokio::select! {
            flown = self.refresh(&held) => flown,
            never = self.prolong(&lease, &held) => match never {},
        };
        if let Err(error) = keeper.store().release_lease(&lease).await {
            tracing::warn!(session = %self.handle, %error, "the lease of a refresh runs out by itself");
        }
        flown
    }

    /// Asks for new tokens unless there are some, and unless the store would not take them: what the provider gives
    /// once cannot be had again.
    async fn refresh(&self, held: &LeaseExpiry) -> Flown {
        let keeper = &self.refresher.keeper;
        for _ in 0..LOOKS {
            let session = match keeper.load(self.handle).await {
                Ok(session) => session,
                Err(error) => return Some(Err(renew_error(error))),
            };
            if let Some(outcome) = self.settled_by_another(session.clone()) {
                return Some(outcome);
            }
            match keeper.rewrite(&session).await {
                Ok(true) => return self.grant(session, held).await,
                // Another write came between: looked at once more.
                Ok(false) => {}
                Err(error) => return Some(Err(renew_error(error))),
            }
        }
        Some(Err(RenewError::StoreUnavailable))
    }

    async fn prolong(&self, lease: &Lease, held: &LeaseExpiry) -> std::convert::Infallible {
        let (keeper, lease_for) = (&self.refresher.keeper, self.refresher.lease);
        let mut was_prolonged = true;
        loop {
            sleep(lease_for / RENEWALS_PER_LEASE).await;
            let asked = Instant::now();
            let prolonged = keeper.store().renew_lease(lease, lease_for).await;
            let is_news = was_prolonged;
            was_prolonged = matches!(prolonged, Ok(true));
            match prolonged {
                Ok(true) => held.prolong(asked, lease_for),
                // What is under way is finished all the same: the provider may have rotated already, and the
                // write is fenced by the generation of the tokens.
                Ok(false) if is_news => {
                    tracing::warn!(session = %self.handle, "the lease of a refresh ran out");
                }
                Err(error) if is_news => {
                    tracing::warn!(session = %self.handle, %error, "the lease of a refresh is not prolonged");
                }
                Ok(false) | Err(_) => {}
            }
        }
    }

    fn settled_by_another(&self, session: Session) -> Option<Result<Session, RenewError>> {
        let outcome = settled(session, self.generation)?;
        self.came_to(FlightOutcome::Joined);
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

/// What a failure to read or write a session means to whoever wants tokens.
pub(super) fn renew_error(error: KeeperError) -> RenewError {
    match error {
        KeeperError::Missing => RenewError::Missing,
        KeeperError::Store(StoreError::Unavailable(_) | StoreError::Full) | KeeperError::StaleVersion => {
            RenewError::StoreUnavailable
        }
        KeeperError::Store(StoreError::Corrupt) | KeeperError::Seal(_) | KeeperError::TooLarge { .. } => {
            tracing::error!(error = &error as &dyn std::error::Error, "a refresh failed");
            RenewError::Internal
        }
    }
}
