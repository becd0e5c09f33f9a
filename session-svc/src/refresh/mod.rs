//! Refreshes tokens at the provider. All replicas together request one grant per session and expiry.
//!
//! A *flight* is one attempt to get newer tokens, in its own task. All calls in this process for the same tokens
//! share it. A disconnected caller does not stop it, and a stopping process waits for it. A lease in the store
//! decides which replica calls the provider. The other replicas poll the session, or take over when the lease
//! has expired.
//!
//! Tokens for single APIs have flights of their own (`api_grant`, `cross_app`). After the provider refuses a request,
//! the next ones pause for a moment (`pauses`).
//!
//! This module also ends sessions (`ending`). It notes their tokens in the store (`revocation_notes`) to revoke them.
//!
//! Callers wait for a bounded time; the exchange with the provider may take longer. A flight that only waits
//! for another replica ends when its last caller leaves.
//!
//! Invariants
//! - The lease holder reads the session again before the request: another replica may just have refreshed.
//! - A replica that may have lost the lease, or cannot write the session at that moment, sends no request.
//! - A flight saves the rotated refresh token before a caller receives the access token. It retries the save
//!   while the session exists: the provider does not issue a lost token again.
//! - If an answer has an ID token, callers receive its access token only after the ID token's validation.
//! - A late write fails, because the session is gone or its tokens have another generation.
//!
//! Not preventable: if the process dies between the provider's rotation and the save, the next refresh is
//! refused and the session needs a sign-in (see `docs/architecture.md`).

mod api_grant;
mod api_servers;
mod cross_app;
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
mod token_request;
mod validation;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chassis::audit::carried;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

pub use api_servers::{ApiServer, ApiServers, ServerList};
pub use measures::Measures;
pub use provider::{RefreshProvider, RefreshProviders};

use self::flight::RefreshFlight;
use self::flights::{FlightResult, FlightWaiter, Flights};
use self::pauses::{Paused, RefreshPauses};
use self::ports::{TokenRefreshError, WaitingCaller};
use self::record::RefreshRecord;
use self::revalidation::MAX_REVALIDATIONS;
use self::token_request::TokenRequest;
use crate::session::{ApiTarget, ApiToken, ApiTokenSource, Session, index};
use crate::session_store::SessionStore;
use crate::transmitter::Outbox;

/// The most revocations at once. Further ones run later, to spare a slow provider.
const MAX_REVOCATIONS: usize = 64;

/// The lifetime of a lease without renewal. If its holder dies, other replicas wait this long. No holder can
/// renew a lease during a failover of the store, so the lifetime is longer than most failovers.
pub const LEASE: Duration = Duration::from_secs(15);

/// How long all replicas remember that an access token was replaced. If the provider rejects exchanges for
/// another reason than the token, this limits refreshes to one a minute.
const REPLACED_PAUSE: Duration = Duration::from_secs(60);

/// Refreshes and revokes tokens at the providers that issued them. Clones share everything.
#[derive(Clone)]
pub struct Refresher {
    session_store: SessionStore,
    pub(crate) providers: RefreshProviders,
    lease: Duration,
    /// The largest size of a sealed session, in bytes.
    max_bytes: usize,
    flights: Flights,
    pauses: RefreshPauses,
    /// Whether a session ends when the provider refuses its refresh token.
    pub(crate) revalidates: bool,
    /// This process's part of lease holder names, generated on first use.
    name: Arc<OnceLock<String>>,
    revalidations: Arc<Semaphore>,
    revocations: Arc<Semaphore>,
    work: TaskTracker,
    /// Reports endings to other systems.
    pub(crate) signals: Option<Arc<Outbox>>,
    measures: Measures,
}

impl Refresher {
    /// Creates a refresher for the sessions of `session_store`. If this replica dies during a refresh, others
    /// wait for `lease`. API tokens never make a session larger than `max_bytes`.
    pub fn new(
        session_store: SessionStore,
        providers: impl Into<RefreshProviders>,
        lease: Duration,
        max_bytes: usize,
        measures: Measures,
    ) -> Self {
        Self {
            session_store,
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

    /// Waits at most `limit` for running work: an aborted grant loses the rotated token. The caller must start
    /// no new work meanwhile.
    pub(crate) async fn finish(&self, limit: Duration) {
        self.work.close();
        if tokio::time::timeout(limit, self.work.wait()).await.is_err() {
            tracing::warn!("refreshes and revocations under way did not finish in time and are cut off");
        }
    }

    /// Joins the running flight for the wanted tokens, or starts one in the name of `caller`. The returned
    /// waiter receives its outcome.
    fn join(&self, seen: &Session, wanted: TokenRequest, caller: &str, ahead: bool) -> FlightWaiter {
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
        wanted: TokenRequest,
        waiting_caller: WaitingCaller<'_>,
    ) -> FlightResult {
        let _waiting = self.measures.waiting();
        let wait_limit = self.providers.wait_limit(&seen.issuer);
        let flight = self.join(seen, wanted, waiting_caller.caller, false);
        let left = wait_limit.saturating_sub(waiting_caller.since.elapsed());
        flight.outcome_within(left).await
    }

    /// Replaces an access token that the provider rejected in an exchange before its expiry.
    /// Repeated calls cause no repeated refreshes: if the new token is rejected too, the next refresh is
    /// possible after [`REPLACED_PAUSE`].
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
        let remembered = self
            .session_store
            .store()
            .remember(name, &generation, REPLACED_PAUSE);
        match remembered.await {
            Err(_) => Err(TokenRefreshError::StoreUnavailable),
            Ok(Some(replaced)) if replaced != generation => Err(TokenRefreshError::SubjectRefused),
            // All calls that saw this token wait for one refresh.
            Ok(_) => self.refresh(seen.clone(), waiting_caller).await,
        }
    }

    /// Whether the sealed session is within the size limit. If sealing fails, it is not; the write then fails too.
    fn fits(&self, session: &Session) -> bool {
        let sealed = self.session_store.vault().seal_session(session);
        sealed.is_ok_and(|sealed| sealed.len() <= self.max_bytes)
    }

    /// Returns the session with newer tokens than `seen`. All waiting calls share one grant, and each waits at
    /// most for the provider's timeout. The next call receives a later outcome.
    pub async fn refresh(
        &self,
        seen: Session,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<Session, TokenRefreshError> {
        if let Some(error) = self
            .pauses
            .find(&seen, Paused::Refresh, self.session_store.now_ms())
        {
            return Err(error);
        }
        let session = self
            .wait_for(&seen, TokenRequest::session(&seen), waiting_caller)
            .await?;
        Ok(Session::clone(&session))
    }

    /// The token type used to request a token for an API at this issuer.
    pub(crate) fn api_token_source(&self, issuer: &str, target: &ApiTarget) -> ApiTokenSource {
        if let Some(server) = self.providers.api_servers().named(&target.audience) {
            return ApiTokenSource::IdToken(server.issuer().to_owned());
        }
        let provider = self.providers.of(issuer);
        provider.map_or(ApiTokenSource::AccessToken, |provider| {
            provider.api_token_source()
        })
    }

    /// The recent refusal of a token for the API, if any.
    pub(crate) fn api_refusal(&self, seen: &Session, target: &ApiTarget) -> Option<TokenRefreshError> {
        let paused = Paused::of_target(target);
        self.pauses.find(seen, paused, self.session_store.now_ms())
    }

    /// Returns an API token newer than the one in the session `seen`; all waiting calls share one grant.
    pub async fn api_token(
        &self,
        seen: &Session,
        target: &ApiTarget,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<ApiToken, TokenRefreshError> {
        if let Some(refused) = self.api_refusal(seen, target) {
            return Err(refused);
        }
        let paused = Paused::of_target(target);
        let source = self.api_token_source(&seen.issuer, target);
        let wanted = |seen: &Session| TokenRequest::api(seen, target.clone(), source.clone());
        let remember = |asked: &Session, error: &TokenRefreshError| {
            if error.is_about_target() {
                let now_ms = self.session_store.now_ms();
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
