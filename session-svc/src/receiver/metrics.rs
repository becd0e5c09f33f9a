//! What became of security events.

use prometheus::{IntCounterVec, Opts, Registry};

/// What became of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventResult {
    /// It ended or changed sessions.
    Acted,
    /// It matched no session.
    Nobody,
    /// It was only noted.
    Noted,
    /// It had acted earlier.
    Repeated,
    /// It was wrong.
    Refused,
    /// There was no verdict, or it could not be applied: its transmitter sends it again.
    Undecided,
}

impl EventResult {
    const ALL: [Self; 6] = [
        Self::Acted,
        Self::Nobody,
        Self::Noted,
        Self::Repeated,
        Self::Refused,
        Self::Undecided,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Acted => "acted",
            Self::Nobody => "nobody",
            Self::Noted => "noted",
            Self::Repeated => "repeated",
            Self::Refused => "refused",
            Self::Undecided => "undecided",
        }
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
        let events = IntCounterVec::new(
            Opts::new(
                "security_events_total",
                "Security events that were delivered, by transmitter, type and what became of them.",
            ),
            &["transmitter", "event", "outcome"],
        )?;
        registry.register(Box::new(events.clone()))?;
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
