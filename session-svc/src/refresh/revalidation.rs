//! Revalidating a session in use: a background refresh. All replicas together start one try per session in [`PAUSE`].
//!
//! Deliberately absent: a schedule. A session that is not used is not refreshed.

use std::time::Duration;

use chassis::audit::carried;

use super::Refresher;
use super::pauses::Paused;
use super::token_request::TokenRequest;
use crate::session::{Cause, Session, index};

/// Pause after a try, for all replicas: a provider that is down must not receive one request per call.
const PAUSE: Duration = Duration::from_secs(15);

/// Tries running at once in one process; further ones wait for the next call.
pub(super) const MAX_REVALIDATIONS: usize = 64;

impl Refresher {
    /// Refreshes valid tokens later and in the background, unless a recent try exists. Concurrent calls share
    /// one grant. `caller` names the program whose call started the refresh; empty for a security event.
    pub fn refresh_later(&self, seen: Session, caller: &str) {
        let (refresher, caller) = (self.clone(), caller.to_owned());
        self.work.spawn(carried(async move {
            let outcome = refresher.try_ahead(&seen, &caller).await;
            refresher.measures.ahead(outcome);
        }));
    }

    /// Tries to refresh the tokens. Returns the outcome's name in the metric.
    async fn try_ahead(&self, seen: &Session, caller: &str) -> &'static str {
        let (pauses, paused) = (&self.pauses, Paused::Revalidation);
        if pauses.find(seen, paused, self.session_store.now_ms()).is_some() {
            return "tried_before";
        }
        let Ok(_permit) = self.revalidations.try_acquire() else {
            return "no_room";
        };
        let name = index::hashed(&[b"refreshed ahead", seen.handle.as_bytes()]);
        match self.session_store.store().remember(name, &[1], PAUSE).await {
            Ok(None) => {}
            Ok(Some(_)) => return "tried_before",
            // No retry: the next caller that needs the token finds out whether the store works again.
            Err(_) => return "failed",
        }
        if self.revalidates && seen.needs_sign_in {
            // The provider refused the token before revalidation was on, or a process died before ending the session.
            return match self.end_at_last(seen, Cause::Refused, Vec::new()).await {
                Ok(()) => "refreshed",
                Err(_) => "failed",
            };
        }
        let mut flight = self.join(seen, TokenRequest::session(seen), caller, true);
        let Err(error) = flight.outcome().await else {
            return "refreshed";
        };
        if self.revalidates && error.keeps_tokens() {
            pauses.begin(seen, paused, error, self.session_store.now_ms());
        }
        "failed"
    }
}
