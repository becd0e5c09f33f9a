//! Receivers that could not be told for a while, as readiness shows them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis::readiness::Condition;
use tokio::time::Instant;

/// What is shorter mends itself: a receiver that is being updated.
const SHOWN_AFTER: Duration = Duration::from_secs(180);

/// Since when each could not be told; clones share it.
#[derive(Clone)]
pub(super) struct Unreached {
    since: Arc<Mutex<BTreeMap<String, Instant>>>,
    condition: Condition,
}

impl Unreached {
    /// Nobody yet.
    pub(super) fn new(condition: Condition) -> Self {
        condition.met();
        Self {
            since: Arc::default(),
            condition,
        }
    }

    /// A receiver could not be told.
    pub(super) fn failed(&self, receiver: &str) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.entry(receiver.to_owned()).or_insert_with(Instant::now);
        self.report(&since, Instant::now());
    }

    /// A receiver was told, or another replica tells it from now on.
    pub(super) fn reached(&self, receiver: &str) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.remove(receiver).is_some() {
            self.report(&since, Instant::now());
        }
    }

    fn report(&self, since: &BTreeMap<String, Instant>, now: Instant) {
        let long = since
            .iter()
            .filter(|(_, at)| now.duration_since(**at) >= SHOWN_AFTER);
        let names: Vec<&str> = long.map(|(id, _)| id.as_str()).collect();
        if names.is_empty() {
            self.condition.met();
        } else {
            self.condition
                .unmet(format!("not told for minutes: {}", names.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use chassis::readiness::{Readiness, Weight};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_receiver_is_named_once_it_could_not_be_told_for_minutes_and_until_it_is_told() {
        let readiness = Readiness::new();
        let unreached = Unreached::new(readiness.condition("signal_receivers", Weight::Informative));
        let shown = || format!("{readiness:?}");
        unreached.failed("files");
        assert!(!shown().contains("files"));
        tokio::time::advance(SHOWN_AFTER).await;
        unreached.failed("files");
        unreached.failed("mail");
        assert!(shown().contains("not told for minutes: files\""), "{}", shown());
        unreached.reached("files");
        assert!(!shown().contains("files"));
    }
}
