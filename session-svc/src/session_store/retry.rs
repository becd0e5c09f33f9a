//! Retries writes that a full or unavailable store rejected, while an ending went on without them.
//!
//! Invariant: retries are bounded in number and time. Deliberately absent: retries that survive the process.

use std::sync::Arc;
use std::time::Duration;

use chassis::audit::carried;
use tokio::time::{Instant, sleep};

use super::SessionStore;
use super::endings::MARK_KEPT_MS;

/// The pause before each retry.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

impl SessionStore {
    /// Retries work in the background until it succeeds, for at most as long as a mark is kept. Each try gets
    /// a clone of the context.
    pub(crate) fn retry_later<C, F, W, E>(&self, what: &'static str, context: C, work: W)
    where
        C: Clone + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        W: Fn(C) -> F + Send + 'static,
    {
        let Ok(permit) = Arc::clone(&self.retries).try_acquire_owned() else {
            tracing::error!(what, "too many writes wait for a retry: this one is dropped");
            return;
        };
        tracing::warn!(what, "could not be written and is retried");
        tokio::spawn(carried(async move {
            let until = Instant::now() + Duration::from_millis(MARK_KEPT_MS);
            while Instant::now() < until {
                sleep(RETRY_PAUSE).await;
                if work(context.clone()).await.is_ok() {
                    tracing::info!(what, "a retry succeeded");
                    return;
                }
            }
            tracing::error!(what, "every retry failed: it is given up");
            drop(permit);
        }));
    }
}
