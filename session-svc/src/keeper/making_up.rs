//! Repeating what a full or unavailable store refused, while an ending went on without it.
//!
//! Invariant: bounded in number and time. Deliberately absent: anything that survives the process.

use std::sync::Arc;
use std::time::Duration;

use chassis::audit::carried;
use tokio::time::{Instant, sleep};

use super::Keeper;
use super::endings::MARK_KEPT_MS;

/// Pause between two tries to make up for what could not be written.
const MAKE_UP_PAUSE: Duration = Duration::from_millis(250);

impl Keeper {
    /// Does in the background what a full or unavailable store refused: again and again until it is done, for as
    /// long as a mark is kept. Each try gets the context.
    pub(crate) fn make_up<C, F, W, E>(&self, what: &'static str, context: C, work: W)
    where
        C: Clone + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        W: Fn(C) -> F + Send + 'static,
    {
        let Ok(permit) = Arc::clone(&self.making_up).try_acquire_owned() else {
            tracing::error!(what, "too much could not be written: it is not made up for");
            return;
        };
        tracing::warn!(what, "could not be written and is made up for");
        tokio::spawn(carried(async move {
            let until = Instant::now() + Duration::from_millis(MARK_KEPT_MS);
            while Instant::now() < until {
                sleep(MAKE_UP_PAUSE).await;
                if work(context.clone()).await.is_ok() {
                    tracing::info!(what, "was made up for");
                    return;
                }
            }
            tracing::error!(what, "could not be made up for in time");
            drop(permit);
        }));
    }
}
