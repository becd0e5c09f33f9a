//! The store's health: checked once a second, shown by readiness, a metric and the log; and once, whether it would survive a restart
//! and keeps what endings promise.
//!
//! A store that does not answer takes the replica out. A full one does not: sessions are read, refreshed and ended, and none
//! of the other replicas on the same store could do more.

use std::sync::Arc;
use std::time::Duration;

use chassis::readiness::{Condition, Weight};
use chassis::runtime::Runtime;
use prometheus::IntGauge;
use tokio_util::sync::CancellationToken;

use crate::store::fact::Assessment;
use crate::store::redis::lacks_right;
use crate::store::{SessionStore, StoreError};

/// How often the store is checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a store that was away is left alone before it is asked again what is asked of it once.
const ONCE_INTERVAL: Duration = Duration::from_secs(30);

/// How long the replicas of a store that was just started may take to connect before their absence is worth a warning.
const REPLICAS_GRACE: Duration = Duration::from_secs(10);

/// Says once in the log what a restart of the store would lose, as far as its user may know: `check-store` says it in full.
pub(crate) async fn warn_of_restarts(store: Arc<dyn SessionStore>, shutdown: CancellationToken) {
    loop {
        match store.restart_facts().await {
            Ok(facts) => {
                for fact in facts {
                    if let Assessment::Warning(advice) | Assessment::Problem(advice) = fact.standing {
                        tracing::warn!(
                            check = fact.name,
                            found = fact.value,
                            advice,
                            "a restart of the store would lose sessions"
                        );
                    }
                }
                return;
            }
            Err(error) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "what a restart of the store would lose cannot be asked"
            ),
        }
        tokio::select! {
            () = tokio::time::sleep(ONCE_INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Says in the log, until they once are, that endings would not be acknowledged as `SESSION_ENDING_REPLICAS` asks: nobody would know
/// before the first sign-out fails.
pub(crate) async fn warn_of_endings(store: Arc<dyn SessionStore>, shutdown: CancellationToken) {
    let mut wait = REPLICAS_GRACE;
    while let Err(error) = store.confirm_removed(&[]).await {
        if lacks_right(&error) || wait == ONCE_INTERVAL {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                advice =
                    "SESSION_ENDING_REPLICAS needs the right +wait and as many replicas near their master",
                "the store does not acknowledge endings: every sign-out would fail"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => wait = ONCE_INTERVAL,
            () = shutdown.cancelled() => return,
        }
    }
}

/// What is reported of the store.
pub(crate) struct StoreCondition {
    answers: Condition,
    has_room: Condition,
    full: IntGauge,
}

impl StoreCondition {
    /// Not checked yet.
    pub(crate) fn new(runtime: &Runtime) -> Result<Self, prometheus::Error> {
        let full = IntGauge::new(
            "session_store_full",
            "Whether the store has no room for new sessions (1) or has (0)",
        )?;
        runtime.metrics.register(Box::new(full.clone()))?;
        Ok(Self {
            answers: runtime.readiness.condition("store", Weight::Required),
            has_room: runtime.readiness.condition("store_room", Weight::Informative),
            full,
        })
    }

    /// Asks until the service stops.
    pub(crate) async fn follow(self, store: Arc<dyn SessionStore>, shutdown: CancellationToken) {
        loop {
            self.report(tokio::time::timeout(TIMEOUT, store.check()).await.ok());
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// `None` is no answer in time.
    fn report(&self, answer: Option<Result<(), StoreError>>) {
        match answer {
            Some(Ok(())) => {
                self.answers.met();
                self.has_room.met();
                self.full.set(0);
            }
            Some(Err(StoreError::Full)) => {
                self.answers.met();
                self.has_room
                    .unmet("the session store is full: no session can begin");
                if self.full.get() == 0 {
                    tracing::error!("the session store is full: no session can begin until it has room");
                }
                self.full.set(1);
            }
            Some(Err(_)) | None => self.answers.unmet("the session store does not answer"),
        }
    }
}
