//! Revalidating a session in use: a refresh in the background, at most one try at a time per session, across replicas.
//!
//! Deliberately absent: a schedule. A session that is not used is not refreshed.

use std::time::Duration;

use chassis::audit::carried;

use super::Refresher;
use super::pauses::Paused;
use super::wanted::Wanted;
use crate::session::{Cause, Session, index};

/// How long a session is left alone after a try, by all replicas: a provider that is down is not called at the rate of
/// the calls.
const PAUSE: Duration = Duration::from_secs(15);

/// Tries under way at once in one process; more are left to the next call.
pub(super) const MAX_REVALIDATIONS: usize = 64;

impl Refresher {
    /// Refreshes tokens that are still good, later and in the background, unless that was tried just now; however many calls need it, one
    /// grant is made. `caller` is whose call showed that it is time.
    pub fn refresh_later(&self, seen: Session, caller: &str) {
        let (refresher, caller) = (self.clone(), caller.to_owned());
        self.work.spawn(carried(async move {
            let outcome = refresher.try_ahead(&seen, &caller).await;
            refresher.measures.ahead(outcome);
        }));
    }

    /// Tries it and gives the outcome, as its metric names it.
    async fn try_ahead(&self, seen: &Session, caller: &str) -> &'static str {
        let (pauses, paused) = (&self.pauses, Paused::Revalidation);
        if pauses.find(seen, paused, self.keeper.now_ms()).is_some() {
            return "tried_before";
        }
        let Ok(_permit) = self.revalidations.try_acquire() else {
            return "no_room";
        };
        let name = index::hashed(&[b"refreshed ahead", seen.handle.as_bytes()]);
        match self.keeper.store().remember(name, &[1], PAUSE).await {
            Ok(None) => {}
            Ok(Some(_)) => return "tried_before",
            // A caller that needs the token finds out whether the store is back.
            Err(_) => return "failed",
        }
        if self.revalidates && seen.needs_sign_in {
            // It was refused before sessions were revalidated, or by a process that died before it ended the session.
            return match self.end_at_last(seen, Cause::Refused, Vec::new()).await {
                Ok(()) => "refreshed",
                Err(_) => "failed",
            };
        }
        let mut flight = self.join(seen, Wanted::session(seen), caller, true);
        let Err(error) = flight.outcome().await else {
            return "refreshed";
        };
        if self.revalidates && error.keeps_tokens() {
            pauses.begin(seen, paused, error, self.keeper.now_ms());
        }
        "failed"
    }
}
