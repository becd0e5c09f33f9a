//! Whether this process should get traffic, as named conditions.
//!
//! Invariants: a draining process is never ready again; details of conditions are our own words, never a
//! peer's. Deliberately absent: liveness, which is only "the process answers".

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What an unmet condition means for readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Not ready while unmet.
    Required,
    /// Not ready until the condition was met once. Afterwards it is only reported.
    Once,
    /// Reported only.
    Informative,
}

#[derive(Debug)]
struct ConditionState {
    name: &'static str,
    weight: Weight,
    met: bool,
    was_met: bool,
    detail: Cow<'static, str>,
}

impl ConditionState {
    fn holds_back(&self) -> bool {
        match self.weight {
            Weight::Required => !self.met,
            Weight::Once => !self.was_met,
            Weight::Informative => false,
        }
    }
}

/// The readiness of this process; clones share it.
#[derive(Debug, Clone)]
pub struct Readiness {
    states: Arc<Mutex<Vec<ConditionState>>>,
    draining: CancellationToken,
    ready: Arc<watch::Sender<bool>>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

impl Readiness {
    /// Ready, with no conditions.
    pub fn new() -> Self {
        Self {
            states: Arc::default(),
            draining: CancellationToken::new(),
            ready: Arc::new(watch::Sender::new(true)),
        }
    }

    /// Adds a condition, unmet at first.
    pub fn condition(&self, name: &'static str, weight: Weight) -> Condition {
        let mut states = self.states();
        let detail = Cow::Borrowed("not known yet");
        states.push(ConditionState {
            name,
            weight,
            met: false,
            was_met: false,
            detail,
        });
        let condition = Condition {
            readiness: self.clone(),
            index: states.len() - 1,
        };
        drop(states);
        self.publish();
        condition
    }

    /// Whether the process accepts traffic.
    pub(crate) fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Turns readiness off permanently.
    pub(crate) fn drain(&self) {
        self.draining.cancel();
        self.publish();
    }

    /// Receives every change of readiness, for example for gRPC's health service.
    pub fn subscribe(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// The body of `/readyz`.
    pub(crate) fn report(&self) -> Value {
        let states = self.states();
        let status = match (self.draining.is_cancelled(), self.is_ready()) {
            (true, _) => "draining",
            (false, true) => "ready",
            (false, false) => "not_ready",
        };
        let conditions: Map<String, Value> = states
            .iter()
            .map(|state| {
                let required = state.weight != Weight::Informative;
                let report = if state.met {
                    json!({"met": true, "required": required})
                } else {
                    json!({"met": false, "required": required, "detail": state.detail})
                };
                (state.name.to_owned(), report)
            })
            .collect();
        json!({"status": status, "conditions": conditions})
    }

    fn publish(&self) {
        // The states stay locked until the result is sent, so that results are sent in order.
        let states = self.states();
        let ready = !self.draining.is_cancelled() && !states.iter().any(ConditionState::holds_back);
        self.ready
            .send_if_modified(|old| std::mem::replace(old, ready) != ready);
    }

    fn states(&self) -> MutexGuard<'_, Vec<ConditionState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One named condition; clones share its state.
#[derive(Debug, Clone)]
pub struct Condition {
    readiness: Readiness,
    index: usize,
}

impl Condition {
    /// Sets the condition to met.
    pub fn mark_met(&self) {
        self.set(true, Cow::Borrowed(""));
    }

    /// Sets the condition to unmet. The reason must not contain a peer's text.
    pub fn unmet(&self, detail: impl Into<Cow<'static, str>>) {
        self.set(false, detail.into());
    }

    fn set(&self, met: bool, detail: Cow<'static, str>) {
        if let Some(state) = self.readiness.states().get_mut(self.index) {
            state.met = met;
            state.was_met |= met;
            state.detail = detail;
        }
        self.readiness.publish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_condition_holds_back_whenever_it_is_unmet() {
        let readiness = Readiness::new();
        assert!(readiness.is_ready());
        let store = readiness.condition("store", Weight::Required);
        assert!(!readiness.is_ready());
        store.mark_met();
        assert!(readiness.is_ready());
        store.unmet("the store does not answer");
        assert!(!readiness.is_ready());
        assert_eq!(
            readiness.report(),
            json!({"status": "not_ready", "conditions": {
                "store": {"met": false, "required": true, "detail": "the store does not answer"}}})
        );
    }

    #[test]
    fn a_once_condition_holds_back_only_until_it_was_met_and_an_informative_one_never() {
        let readiness = Readiness::new();
        let reached = readiness.condition("session service", Weight::Once);
        let told = readiness.condition("provider", Weight::Informative);
        assert!(!readiness.is_ready());
        reached.mark_met();
        reached.unmet("gone");
        told.unmet("gone");
        assert!(readiness.is_ready());
        assert_eq!(readiness.report()["conditions"]["session service"]["met"], false);
    }

    #[test]
    fn a_draining_process_is_never_ready_again() {
        let readiness = Readiness::new();
        let store = readiness.condition("store", Weight::Required);
        readiness.drain();
        store.mark_met();
        assert!(!readiness.is_ready());
        assert_eq!(readiness.report()["status"], "draining");
    }
}
