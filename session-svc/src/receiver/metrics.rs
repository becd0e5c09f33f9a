//! Counts the results of security events.

use prometheus::{IntCounterVec, Registry, register_int_counter_vec_with_registry};

named! {
    all;
    /// The result of one event.
    pub(super) enum EventResult {
        /// It ended or changed sessions.
        Acted => "acted",
        /// No session matched it.
        Nobody => "nobody",
        /// It was only noted.
        Noted => "noted",
        /// It had taken effect earlier.
        Repeated => "repeated",
        /// It was invalid.
        Refused => "refused",
        /// There was no verdict, or it could not be applied: its transmitter sends it again.
        Undecided => "undecided",
    }
}

/// The label of an unknown transmitter, and of an event that was not read.
const UNKNOWN: &str = "unknown";

/// Counts the results of security events. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct EventCounts(IntCounterVec);

impl EventCounts {
    /// Makes and registers the metric. Each transmitter's results without an event type start at 0.
    ///
    /// # Errors
    /// It is registered already.
    pub(super) fn new<'a>(
        registry: &Registry,
        transmitters: impl Iterator<Item = &'a str>,
    ) -> Result<Self, prometheus::Error> {
        let events = register_int_counter_vec_with_registry!(
            "security_events_total",
            "Security events that were received, by transmitter, type and outcome.",
            &["transmitter", "event", "outcome"],
            registry
        )?;
        for transmitter in transmitters {
            for result in EventResult::ALL {
                events.with_label_values(&[transmitter, UNKNOWN, result.name()]);
            }
        }
        Ok(Self(events))
    }

    pub(super) fn count(&self, transmitter: Option<&str>, event: Option<&str>, result: EventResult) {
        let (transmitter, event) = (transmitter.unwrap_or(UNKNOWN), event.unwrap_or(UNKNOWN));
        self.0
            .with_label_values(&[transmitter, event, result.name()])
            .inc();
    }
}
