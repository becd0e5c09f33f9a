//! What became of security events.

use prometheus::{IntCounterVec, Registry, register_int_counter_vec_with_registry};

named! {
    all;
    /// What became of one.
    pub(super) enum EventResult {
        /// It ended or changed sessions.
        Acted => "acted",
        /// It matched no session.
        Nobody => "nobody",
        /// It was only noted.
        Noted => "noted",
        /// It had acted earlier.
        Repeated => "repeated",
        /// It was wrong.
        Refused => "refused",
        /// There was no verdict, or it could not be applied: its transmitter sends it again.
        Undecided => "undecided",
    }
}

/// The label of a transmitter that is not configured, and of an event that was not read.
const UNKNOWN: &str = "unknown";

/// Counts what became of security events. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct EventCounts(IntCounterVec);

impl EventCounts {
    /// Makes the metric, the results of each transmitter without a type of event at 0, and registers it.
    ///
    /// # Errors
    /// It is registered already.
    pub(super) fn new<'a>(
        registry: &Registry,
        transmitters: impl Iterator<Item = &'a str>,
    ) -> Result<Self, prometheus::Error> {
        let events = register_int_counter_vec_with_registry!(
            "security_events_total",
            "Security events that were delivered, by transmitter, type and what became of them.",
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
