//! Calls to the session service that continue after the browser has received its answer.
//!
//! Invariants
//! - They are bounded in number and time.
//! - Each call is idempotent: the edge may make it twice.

use std::sync::Arc;
use std::time::Duration;

use chassis::audit::carried;
use session_proto::client::SessionError;

use crate::sign_in::SignIn;

/// Most attempts of a call. With the pauses below they take about a quarter of an hour.
const TRIES: u32 = 37;
/// First pause between two attempts, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Most background calls at once.
pub(crate) const MAX_BACKGROUND: usize = 1024;

/// Makes a call, and retries for a bounded time while the session service or its store is unavailable.
pub(super) fn until_done<F, W>(sign_in: &SignIn, what: &'static str, work: W)
where
    F: Future<Output = Result<(), SessionError>> + Send,
    W: Fn() -> F + Send + 'static,
{
    let Ok(permit) = Arc::clone(&sign_in.background).try_acquire_owned() else {
        tracing::error!(what, "too much background work is waiting: this work is dropped");
        return;
    };
    tokio::spawn(carried(async move {
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            match work().await {
                Ok(()) => break,
                Err(error) if error.is_unavailable() => {
                    tracing::warn!(what, error = &error as &dyn std::error::Error, "not done yet");
                }
                Err(error) => {
                    tracing::error!(
                        what,
                        error = &error as &dyn std::error::Error,
                        "could not be done"
                    );
                    break;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        drop(permit);
    }));
}
