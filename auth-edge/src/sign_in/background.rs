//! Calls to the session service that go on after the browser has its answer.
//!
//! Invariants
//! - They are bounded in number and time.
//! - Each call may be made twice.

use std::sync::Arc;
use std::time::Duration;

use chassis::audit::carried;
use session_proto::client::SessionError;

use crate::sign_in::SignIn;

/// How often a call is made; with the pauses below, for about a quarter of an hour.
const TRIES: u32 = 37;
/// First pause between two tries, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Calls in the background at once.
pub(crate) const MAX_BACKGROUND: usize = 1024;

/// Makes a call, and keeps trying for a bounded time while the session service or its store is away.
pub(super) fn until_done<F, W>(sign_in: &SignIn, what: &'static str, work: W)
where
    F: Future<Output = Result<(), SessionError>> + Send,
    W: Fn() -> F + Send + 'static,
{
    let Ok(permit) = Arc::clone(&sign_in.background).try_acquire_owned() else {
        tracing::error!(what, "too much waits in the background: given up");
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
