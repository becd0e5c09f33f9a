//! Fetches the events of a transmitter that does not push them (RFC 8936).
//!
//! Invariants
//! - Of all replicas one polls: it holds a lease of the store. Two that do for a moment do no harm, since whoever takes an event
//!   takes it once.
//! - An event is acknowledged after it was taken, and refused after it was judged; one that cannot be judged is neither, and comes
//!   again.
//! - What was told and not answered is told again until it is: the transmitter may have it or not.
//! - No answer of a transmitter makes anybody ask it faster than [`PollTiming`] say.

use std::collections::HashSet;
use std::time::Duration;

use oidc::{
    MAX_POLLED_EVENTS, PollRequest, PolledEvent, RefusedEvent, SecurityEventErrorCode, Transmitter,
    TransmitterError, unverified_token_id,
};
use ring::rand::SystemRandom;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::received::Received;
use super::stream_record::StreamRecords;
use crate::keeper::{Keeper, KeeperError};
use crate::session::{SessionId, index};
use crate::store::{Lease, LeaseName, StoreError};

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// How long is waited between two requests, and who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PollTiming {
    /// After the first of several failures; doubled with each.
    pub(super) first_failure: Duration,
    /// At most, however many there were, and however long the transmitter would have us wait.
    pub(super) last_failure: Duration,
    /// Before events that could not be judged are asked for again, and with them whatever has come meanwhile; also before
    /// those that come although they were answered.
    pub(super) undecided: Duration,
    /// At least between the beginnings of two requests that bring nothing, where the transmitter does not wait for events.
    pub(super) idle: Duration,
    /// Before a stream, or the lease that another replica holds, is looked for again.
    pub(super) look: Duration,
    /// How long a replica polls alone; it prolongs that for as long as it lives.
    pub(super) lease: Duration,
}

impl Default for PollTiming {
    fn default() -> Self {
        Self {
            first_failure: Duration::from_secs(1),
            last_failure: Duration::from_secs(300),
            undecided: Duration::from_secs(10),
            idle: Duration::from_secs(5),
            look: Duration::from_secs(10),
            lease: Duration::from_secs(30),
        }
    }
}

/// Takes events that were fetched.
pub(super) trait EventReceiver: Send + Sync {
    /// Takes one, by its token.
    fn take(&self, token: &str) -> impl Future<Output = Received> + Send;
}

/// Polls one transmitter.
pub(super) struct Polling<R> {
    /// What the transmitter is called here.
    pub(super) transmitter_id: String,
    /// The transmitter.
    pub(super) transmitter: Transmitter,
    /// In whose store the record of its stream is, and the lease.
    pub(super) keeper: Keeper,
    /// How long is waited, for what.
    pub(super) timing: PollTiming,
    /// Who takes its events.
    pub(super) receiver: R,
}

/// Why events could not be fetched.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Transmitter(TransmitterError),
    #[error("the record of the stream cannot be read")]
    Store(#[source] KeeperError),
}

/// What is told with the next request.
#[derive(Debug, Default)]
struct Answers {
    ack: Vec<String>,
    set_errs: Vec<RefusedEvent>,
}

/// What is kept from one request to the next.
struct Progress {
    /// What was not confirmed yet.
    answers: Answers,
    /// Whether the next request is answered at once: the one before has waited without any answer.
    at_once: bool,
    max_events: usize,
    /// What was answered last.
    answered: HashSet<String>,
    failures: u32,
}

impl<R: EventReceiver> Polling<R> {
    /// Polls until `shutdown`. An event under way is finished.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let transmitter = self.transmitter_id.as_str();
        let Ok(holder) = SessionId::random(&SystemRandom::new()).map(|id| id.handle().to_string()) else {
            tracing::error!(
                transmitter,
                "the operating system gave no random bytes: polling is left to other replicas"
            );
            return;
        };
        while !shutdown.is_cancelled() {
            match self.lease(&holder).await {
                Ok(Some(lease)) => {
                    tokio::select! {
                        () = self.poll(&shutdown) => {}
                        () = self.hold(&lease) => {
                            tracing::info!(transmitter, "another replica polls from now on");
                        }
                    }
                    // One that is not given back ends by itself.
                    let _ = self.keeper.store().release_lease(&lease).await;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(
                    transmitter,
                    error = &error as &dyn std::error::Error,
                    "which replica polls can not be settled: the store does not answer"
                ),
            }
            rest(self.timing.look, &shutdown).await;
        }
    }

    async fn lease(&self, holder: &str) -> Result<Option<Lease>, StoreError> {
        let id = self.transmitter_id.as_bytes();
        let name = LeaseName::Named(index::hashed(&[b"signal polling", id]));
        self.keeper
            .store()
            .acquire_lease(name, holder, self.timing.lease)
            .await
    }

    /// Prolongs a lease for as long as it is held.
    async fn hold(&self, lease: &Lease) {
        loop {
            sleep(self.timing.lease / 3).await;
            match self.keeper.store().renew_lease(lease, self.timing.lease).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::debug!(
                    transmitter = self.transmitter_id,
                    error = &error as &dyn std::error::Error,
                    "the lease of polling could not be prolonged"
                ),
            }
        }
    }

    async fn poll(&self, shutdown: &CancellationToken) {
        let mut progress = Progress::new();
        while !shutdown.is_cancelled() {
            let pause = match self.round(&mut progress, shutdown).await {
                Ok(pause) => {
                    if progress.failures > 0 {
                        tracing::info!(
                            transmitter = self.transmitter_id,
                            "security events are fetched again"
                        );
                    }
                    progress.failures = 0;
                    pause
                }
                Err(failure) => self.failed(&mut progress, &failure),
            };
            rest(pause, shutdown).await;
        }
    }

    /// How long to wait after a failure.
    fn failed(&self, progress: &mut Progress, failure: &Failure) -> Duration {
        let doubled = 2_u32.saturating_pow(progress.failures.min(16));
        progress.failures = progress.failures.saturating_add(1);
        let doubled = self.timing.first_failure.saturating_mul(doubled);
        let told = match failure {
            Failure::Transmitter(TransmitterError::TooManyRequests {
                retry_after_secs: Some(secs),
            }) => Duration::from_secs(*secs),
            Failure::Transmitter(_) | Failure::Store(_) => Duration::ZERO,
        };
        let reason = match failure {
            Failure::Transmitter(error) => error.reason(),
            Failure::Store(_) => "store",
        };
        let pause = doubled.max(told).min(self.timing.last_failure);
        tracing::warn!(
            transmitter = self.transmitter_id,
            reason,
            error = failure as &dyn std::error::Error,
            pause_secs = pause.as_secs(),
            "security events could not be fetched"
        );
        pause
    }

    /// One request, and what becomes of the events it brings. Gives how long to wait before the next.
    async fn round(
        &self,
        progress: &mut Progress,
        shutdown: &CancellationToken,
    ) -> Result<Duration, Failure> {
        let Some(url) = self.poll_url().await? else {
            return Ok(self.timing.look);
        };
        let began = Instant::now();
        let waits = !progress.at_once && progress.answers.is_empty();
        let request = PollRequest {
            max_events: progress.max_events,
            return_immediately: !waits,
            ack: &progress.answers.ack,
            set_errs: &progress.answers.set_errs,
        };
        let response = tokio::select! {
            response = self.transmitter.poll(&url, &request, self.now()) => response,
            () = shutdown.cancelled() => return Ok(Duration::ZERO),
        };
        let response = match response {
            Ok(response) => response,
            // Nothing came for as long as we wait; the next request shows whether the transmitter is there.
            Err(error) if waits && error.is_timeout() => {
                progress.at_once = true;
                return Ok(Duration::ZERO);
            }
            Err(error) if error.is_too_large() && progress.max_events > 1 => {
                progress.max_events = 1;
                return Ok(Duration::ZERO);
            }
            Err(error) => return Err(Failure::Transmitter(error)),
        };
        progress.answers = Answers::default();
        progress.at_once = false;
        progress.max_events = MAX_POLLED_EVENTS;
        if !response.sets.is_empty() {
            return self.take(progress, response.sets, &url, shutdown).await;
        }
        Ok(if waits {
            self.timing.idle.saturating_sub(began.elapsed())
        } else {
            Duration::ZERO
        })
    }

    /// Hands events to whoever takes them. What is answered is told with the next request, or here where that has to wait.
    async fn take(
        &self,
        progress: &mut Progress,
        events: Vec<PolledEvent>,
        url: &Url,
        shutdown: &CancellationToken,
    ) -> Result<Duration, Failure> {
        let is_new = events.iter().any(|event| !progress.answered.contains(&event.jti));
        let mut is_left = false;
        for event in events {
            let received = if shutdown.is_cancelled() {
                Received::Undecided
            } else {
                self.received(&event).await
            };
            match received {
                Received::Taken => progress.answers.ack.push(event.jti),
                Received::Refused { code, description } => progress.answers.set_errs.push(RefusedEvent {
                    jti: event.jti,
                    code,
                    description,
                }),
                Received::Undecided => is_left = true,
            }
        }
        progress.answered = progress.answers.ids().map(str::to_owned).collect();
        if is_new && !is_left {
            return Ok(Duration::ZERO);
        }
        if !progress.answers.is_empty() {
            let tells = PollRequest {
                ack: &progress.answers.ack,
                set_errs: &progress.answers.set_errs,
                ..PollRequest::default()
            };
            let told = self.transmitter.poll(url, &tells, self.now()).await;
            told.map_err(Failure::Transmitter)?;
            progress.answers = Answers::default();
        }
        Ok(self.timing.undecided)
    }

    async fn received(&self, event: &PolledEvent) -> Received {
        let malformed = |description: &str| Received::Refused {
            code: SecurityEventErrorCode::InvalidRequest,
            description: description.to_owned(),
        };
        let Some(raw) = &event.raw else {
            return malformed("this is no security event token, or one that is too long");
        };
        // Their names are their identifiers (section 2.3): by another name another event would be acknowledged.
        if unverified_token_id(raw).as_deref() != Some(event.jti.as_str()) {
            return malformed("the token has another jti than the one it is sent under");
        }
        self.receiver.take(raw).await
    }

    /// Where the stream of this transmitter is polled; `None` where it has none.
    async fn poll_url(&self) -> Result<Option<Url>, Failure> {
        let records = StreamRecords::of(&self.keeper);
        let kept = records.load(&self.transmitter_id).await.map_err(Failure::Store)?;
        let stream = kept.map(|kept| kept.stream);
        let stream = stream.filter(|stream| stream.issuer == self.transmitter.settings().issuer);
        Ok(stream.and_then(|stream| stream.poll_url))
    }

    fn now(&self) -> u64 {
        self.keeper.now_ms() / SECOND_MS
    }
}

async fn rest(pause: Duration, shutdown: &CancellationToken) {
    tokio::select! {
        () = sleep(pause) => {}
        () = shutdown.cancelled() => {}
    }
}

impl Progress {
    fn new() -> Self {
        Self {
            answers: Answers::default(),
            at_once: false,
            max_events: MAX_POLLED_EVENTS,
            answered: HashSet::new(),
            failures: 0,
        }
    }
}

impl Answers {
    fn is_empty(&self) -> bool {
        self.ack.is_empty() && self.set_errs.is_empty()
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        let refused = self.set_errs.iter().map(|refused| refused.jti.as_str());
        self.ack.iter().map(String::as_str).chain(refused)
    }
}

#[cfg(test)]
#[path = "polling_tests.rs"]
mod tests;
