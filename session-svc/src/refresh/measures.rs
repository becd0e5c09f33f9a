//! Metrics of refreshes and revocations.

use prometheus::{
    Histogram, HistogramTimer, IntCounterVec, IntGauge, Registry, register_histogram_with_registry,
    register_int_counter_vec_with_registry, register_int_gauge_with_registry,
};

/// Bounds of the histograms, in seconds. A fast provider answers in tens of milliseconds. By default, callers
/// wait five seconds, and a request to a provider times out after twenty.
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 15.0, 30.0,
];

named! {
    /// The outcome of a flight.
    pub(super) enum FlightOutcome {
        /// This replica received new tokens and saved them.
        Refreshed => "refreshed",
        /// Another replica had refreshed, or had been refused.
        Joined => "joined",
        /// This replica received new tokens too late: another outcome was already saved.
        Superseded => "superseded",
        /// The provider finally refused the refresh token: the session needs a sign-in.
        Refused => "refused",
        /// The provider refused this client, or something else that a retry may fix.
        Rejected => "rejected",
        /// The provider's answer had no usable token.
        Unusable => "unusable",
        /// The provider issues no token for this API, or not with this scope.
        Target => "target",
        /// The provider could not be reached; a retry is possible.
        Transient => "transient",
        /// The answer's ID token cannot be validated yet: the answer is pending, its tokens unused.
        IdTokenNotVerified => "unjudged",
        /// The answer was about another user: the session was ended.
        Mismatched => "mismatched",
        /// The session ended meanwhile.
        Ended => "ended",
        /// The store could not be reached.
        Store => "store",
        /// A fault of the service.
        Fault => "fault",
    }
}

/// The counters and histograms; clones share them.
#[derive(Clone)]
pub struct Measures {
    flights: IntCounterVec,
    api_tokens: IntCounterVec,
    ahead: IntCounterVec,
    revocations: IntCounterVec,
    provider: Histogram,
    waits: Histogram,
    waiting: IntGauge,
    unsaved: IntGauge,
}

impl Measures {
    /// Registers the metrics in the given registry.
    /// # Errors
    /// The registry already has these metrics.
    pub fn new(metrics: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str| {
            register_int_counter_vec_with_registry!(name, help, &["outcome"], metrics)
        };
        let histogram =
            |name: &str, help: &str| register_histogram_with_registry!(name, help, BUCKETS.to_vec(), metrics);
        let gauge = |name: &str, help: &str| register_int_gauge_with_registry!(name, help, metrics);
        Ok(Self {
            flights: counter(
                "session_refreshes_total",
                "Refreshes by outcome; joined ones used the tokens that another replica had requested.",
            )?,
            api_tokens: counter(
                "session_api_tokens_total",
                "Requests for tokens of single APIs by outcome; joined ones used the tokens that another replica had requested.",
            )?,
            ahead: counter(
                "session_refreshes_ahead_total",
                "Attempts to refresh a session in use in the background, by outcome.",
            )?,
            revocations: counter(
                "session_revocations_total",
                "Attempts to revoke tokens at the provider, by outcome.",
            )?,
            provider: histogram(
                "session_refresh_provider_duration_seconds",
                "How long the provider took to answer a refresh grant.",
            )?,
            waits: histogram(
                "session_refresh_wait_duration_seconds",
                "How long calls waited for a refresh.",
            )?,
            waiting: gauge(
                "session_refresh_waiting",
                "Calls that wait for a refresh at this moment.",
            )?,
            unsaved: gauge(
                "session_refresh_unsaved",
                "Outcomes of refreshes that are not stored yet: they are lost if this process ends.",
            )?,
        })
    }

    pub(super) fn flight(&self, outcome: FlightOutcome, is_for_api: bool) {
        let flights = if is_for_api {
            &self.api_tokens
        } else {
            &self.flights
        };
        flights.with_label_values(&[outcome.name()]).inc();
    }

    pub(super) fn ahead(&self, outcome: &'static str) {
        self.ahead.with_label_values(&[outcome]).inc();
    }

    pub(super) fn revocation(&self, outcome: &'static str) {
        self.revocations.with_label_values(&[outcome]).inc();
    }

    /// Times a request to a provider until dropped.
    pub(super) fn asking_provider(&self) -> HistogramTimer {
        self.provider.start_timer()
    }

    /// Counts and times a waiting call until dropped.
    pub(super) fn waiting(&self) -> (GaugeGuard<'_>, HistogramTimer) {
        (GaugeGuard::new(&self.waiting), self.waits.start_timer())
    }

    /// Counts an unsaved outcome until dropped.
    pub(super) fn unsaved(&self) -> GaugeGuard<'_> {
        GaugeGuard::new(&self.unsaved)
    }
}

/// A gauge increment that ends on drop.
pub(super) struct GaugeGuard<'a>(&'a IntGauge);

impl<'a> GaugeGuard<'a> {
    fn new(gauge: &'a IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_explains_every_refresh_that_fails() {
        use FlightOutcome as F;
        let manual = include_str!("../../../docs/sign-in-fails.md");
        let (_, of_refreshes) = manual.split_once("## A refresh that fails").expect("its chapter");
        let rows = of_refreshes.lines().filter_map(|line| line.strip_prefix("| `"));
        let explained: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        let failing = [
            F::Refused,
            F::Rejected,
            F::Unusable,
            F::Transient,
            F::IdTokenNotVerified,
            F::Mismatched,
            F::Store,
            F::Fault,
        ];
        assert_eq!(explained, failing.map(F::name));
    }
}
