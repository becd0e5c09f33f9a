//! What is counted of events and of what waits.

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};

/// What became of an event for one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalOutcome {
    /// Its receiver has acknowledged it.
    Delivered,
    /// Its receiver refused it for good.
    Refused,
    /// Its receiver could not be told this time.
    Failed,
    /// It was too old, or one too many.
    Dropped,
    /// It could not be noted, nor in the two minutes after, or too many could not.
    Lost,
}

impl SignalOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
            Self::Lost => "lost",
        }
    }
}

/// Counts; clones share.
#[derive(Clone)]
pub(super) struct Measures {
    signals: IntCounterVec,
    queued: IntGaugeVec,
    oldest: GaugeVec,
}

impl Measures {
    /// Measures into the registry given.
    ///
    /// # Errors
    /// It measures already.
    pub(super) fn new(metrics: &Registry) -> Result<Self, prometheus::Error> {
        let signals = IntCounterVec::new(
            Opts::new(
                "signals_sent_total",
                "What became of events that receivers were to be told, by receiver, event and outcome",
            ),
            &["receiver", "event", "outcome"],
        )?;
        let queued = IntGaugeVec::new(
            Opts::new(
                "signals_queued",
                "Events that wait for their receiver, told by the replica that has its lease",
            ),
            &["receiver"],
        )?;
        let oldest = GaugeVec::new(
            Opts::new(
                "signals_oldest_seconds",
                "How long the oldest event has waited for its receiver, told by the replica that has its lease",
            ),
            &["receiver"],
        )?;
        metrics.register(Box::new(signals.clone()))?;
        metrics.register(Box::new(queued.clone()))?;
        metrics.register(Box::new(oldest.clone()))?;
        Ok(Self {
            signals,
            queued,
            oldest,
        })
    }

    /// Counts an event.
    pub(super) fn signal(&self, receiver: &str, event: &str, outcome: SignalOutcome) {
        self.signals
            .with_label_values(&[receiver, event, outcome.name()])
            .inc();
    }

    /// Tells how many events wait, and for how long the oldest has.
    pub(super) fn waiting(&self, receiver: &str, count: usize, oldest_ms: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.queued.with_label_values(&[receiver]).set(count);
        let secs = std::time::Duration::from_millis(oldest_ms).as_secs_f64();
        self.oldest.with_label_values(&[receiver]).set(secs);
    }
}
