//! Refreshing tokens at the provider: one grant per expiry per session, across all replicas.
//!
//! In this process all calls for one session share one flight, which runs in a task of its own: a caller that hangs
//! up changes nothing, and a process that is to stop waits for it. Between replicas a lease of the store decides
//! who calls the provider; the others look at the session until it is written, or take over when the lease has run out.
//!
//! Tokens for single APIs are requested the same way (`api_grant`), each by flights of its own. What the provider refused is not
//! requested again for a moment (`pauses`).
//!
//! Sessions end here (`ending`). Their tokens are revoked (`revocation`), which is noted in the store first (`revocation_notes`).
//!
//! Callers wait for a bounded time, the exchange for as long as it needs; a flight that only waits for another replica
//! ends with the last of its callers.
//!
//! Invariants
//! - The holder of the lease reads the session again before the request: another replica may just have refreshed.
//! - A replica that may have lost the lease sends no request, nor one that cannot write the session just then.
//! - The rotated refresh token is saved before anyone sees the access token, and the save is tried for as long as the
//!   session lives: a lost one cannot be had again.
//! - An access token that came with an ID token is not seen before that is validated; while it cannot be, the answer is
//!   pending.
//! - A write that comes late loses: against an ended session by its absence, against an outcome that was written
//!   meanwhile, good or bad, by the generation of the tokens.
//!
//! What cannot be closed: if the process dies between the provider's rotation and the save, the next refresh is
//! refused and the session says that it needs a sign-in (see `docs/architecture.md`).

mod api_grant;
mod ending;
mod flight;
mod flights;
mod grant;
mod measures;
mod pauses;
pub mod ports;
mod provider;
mod record;
mod revalidation;
mod revocation;
mod revocation_notes;
mod validation;
mod wanted;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chassis::audit::carried;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

pub use measures::Measures;
pub use provider::{RefreshProvider, RefreshProviders};

use self::flight::RefreshFlight;
use self::flights::{FlightResult, FlightWaiter, Flights};
use self::pauses::{Paused, RefreshPauses};
use self::ports::{TokenRefreshError, WaitingCaller};
use self::record::RefreshRecord;
use self::revalidation::MAX_REVALIDATIONS;
use self::wanted::Wanted;
use crate::keeper::Keeper;
use crate::session::{ApiTarget, ApiToken, ApiTokenSource, Session, index};
use crate::transmitter::Outbox;

/// Revocations in flight at once: more are postponed, since they would only add to the load of a slow provider.
const MAX_REVOCATIONS: usize = 64;

/// How long a lease lasts without being prolonged: what others wait when its holder dies, and longer than
/// most failovers, which no holder can prolong it in.
pub const LEASE: Duration = Duration::from_secs(15);

/// How long all replicas remember which token was replaced: where exchanges fail for another reason, this bounds the refreshes to
/// one a minute.
const REPLACED_PAUSE: Duration = Duration::from_secs(60);

/// Refreshes and revokes tokens at the providers they came from. Clones share everything.
#[derive(Clone)]
pub struct Refresher {
    keeper: Keeper,
    providers: RefreshProviders,
    lease: Duration,
    /// The most bytes a sealed session may take.
    max_bytes: usize,
    flights: Flights,
    pauses: RefreshPauses,
    /// Whether a session ends whose refresh token the provider refuses.
    pub(crate) revalidates: bool,
    /// This process's part of the names of its leases' holders, drawn when it is first needed.
    name: Arc<OnceLock<String>>,
    revalidations: Arc<Semaphore>,
    revocations: Arc<Semaphore>,
    work: TaskTracker,
    /// Tells other systems of endings.
    pub(crate) signals: Option<Arc<Outbox>>,
    measures: Measures,
}

impl Refresher {
    /// A refresher of the sessions kept by `keeper`, at the providers given; `lease` is what other replicas wait when
    /// this one dies in the middle of a refresh. No token for an API makes a session larger than `max_bytes`.
    pub fn new(
        keeper: Keeper,
        providers: impl Into<RefreshProviders>,
        lease: Duration,
        max_bytes: usize,
        measures: Measures,
    ) -> Self {
        Self {
            keeper,
            providers: providers.into(),
            lease,
            max_bytes,
            flights: Flights::default(),
            pauses: RefreshPauses::default(),
            revalidates: false,
            name: Arc::default(),
            revalidations: Arc::new(Semaphore::new(MAX_REVALIDATIONS)),
            revocations: Arc::new(Semaphore::new(MAX_REVOCATIONS)),
            work: TaskTracker::new(),
            signals: None,
            measures,
        }
    }

    /// Waits until what was begun is finished, at most `limit`: a grant that is cut off loses the rotated token.
    /// Nothing new may begin meanwhile.
    pub(crate) async fn finish(&self, limit: Duration) {
        self.work.close();
        if tokio::time::timeout(limit, self.work.wait()).await.is_err() {
            tracing::warn!("refreshes and revocations under way did not finish in time and are cut off");
        }
    }

    /// Waits for the flight that brings what is wanted of the session seen: the one under way, or a new one, which a call of
    /// `caller` begins.
    fn join(&self, seen: &Session, wanted: Wanted, caller: &str, ahead: bool) -> FlightWaiter {
        let span = || record::span(seen.handle, ahead);
        let (waiting, entry) = self.flights.join(seen.handle, wanted.clone(), span);
        if let Some(entry) = entry {
            let span = entry.span();
            let flight = RefreshFlight {
                refresher: self.clone(),
                entry,
                wanted,
                handle: seen.handle,
                record: RefreshRecord::begin(seen, caller, ahead),
            };
            self.work.spawn(carried(flight.run().instrument(span)));
        }
        waiting
    }

    async fn wait_for(
        &self,
        seen: &Session,
        wanted: Wanted,
        waiting_caller: WaitingCaller<'_>,
    ) -> FlightResult {
        let _waiting = self.measures.waiting();
        let wait_limit = self.providers.wait_limit(&seen.issuer);
        let flight = self.join(seen, wanted, waiting_caller.caller, false);
        let left = wait_limit.saturating_sub(waiting_caller.since.elapsed());
        flight.outcome_within(left).await
    }

    /// The session with another access token than the one seen, which the provider does not take for an exchange though it has not
    /// expired. A caller that calls again and again costs no refresh each time: where the token of such a refresh is not taken
    /// either, there is none for [`REPLACED_PAUSE`].
    async fn replace_subject(
        &self,
        seen: &Session,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<Session, TokenRefreshError> {
        if seen.needs_sign_in {
            return Err(TokenRefreshError::Refused);
        }
        if seen.tokens.refresh.is_none() {
            return Err(TokenRefreshError::SubjectRefused);
        }
        let generation = seen.tokens.access_generation().to_be_bytes();
        let name = index::hashed(&[b"replaced subject token", seen.handle.as_bytes()]);
        let remembered = self.keeper.store().remember(name, &generation, REPLACED_PAUSE);
        match remembered.await {
            Err(_) => Err(TokenRefreshError::StoreUnavailable),
            Ok(Some(replaced)) if replaced != generation => Err(TokenRefreshError::SubjectRefused),
            // All calls that saw this token wait for one refresh.
            Ok(_) => self.refresh(seen.clone(), waiting_caller).await,
        }
    }

    /// Whether a session is no larger than one may be. What cannot be sealed is told when it is written.
    fn fits(&self, session: &Session) -> bool {
        let sealed = self.keeper.vault().seal_session(session);
        sealed.is_ok_and(|sealed| sealed.len() <= self.max_bytes)
    }

    /// Gives the session after a refresh that is newer than the one `seen`; however many calls wait, one grant is made.
    /// A call waits for as long as the provider has for an answer at most; what comes later is there for the next one.
    pub async fn refresh(
        &self,
        seen: Session,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<Session, TokenRefreshError> {
        if let Some(error) = self.pauses.find(&seen, Paused::Refresh, self.keeper.now_ms()) {
            return Err(error);
        }
        let session = self
            .wait_for(&seen, Wanted::session(&seen), waiting_caller)
            .await?;
        Ok(Session::clone(&session))
    }

    /// What tokens for single APIs are requested with at this issuer.
    pub(crate) fn api_token_source(&self, issuer: &str) -> ApiTokenSource {
        let provider = self.providers.of(issuer);
        provider.map_or(ApiTokenSource::AccessToken, |provider| {
            provider.api_token_source()
        })
    }

    /// Gives a token for an API newer than the one in the session `seen`; however many calls wait, one grant is made.
    pub async fn api_token(
        &self,
        seen: &Session,
        target: &ApiTarget,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<ApiToken, TokenRefreshError> {
        let paused = Paused::of_target(target);
        if let Some(refused) = self.pauses.find(seen, paused, self.keeper.now_ms()) {
            return Err(refused);
        }
        let source = self.api_token_source(&seen.issuer);
        let wanted = |seen: &Session| Wanted::api(seen, target.clone(), source);
        let remember = |asked: &Session, error: &TokenRefreshError| {
            if error.is_about_target() {
                let now_ms = self.keeper.now_ms();
                self.pauses.begin(asked, paused, *error, now_ms);
            }
        };
        let session = match self.wait_for(seen, wanted(seen), waiting_caller).await {
            Err(TokenRefreshError::SubjectRefused) => {
                let replaced = self.replace_subject(seen, waiting_caller).await;
                let replaced = replaced.inspect_err(|error| remember(seen, error))?;
                let outcome = self.wait_for(&replaced, wanted(&replaced), waiting_caller).await;
                outcome.inspect_err(|error| remember(&replaced, error))?
            }
            outcome => outcome.inspect_err(|error| remember(seen, error))?,
        };
        session
            .tokens
            .api
            .get(target)
            .cloned()
            .ok_or(TokenRefreshError::Internal)
    }
}
