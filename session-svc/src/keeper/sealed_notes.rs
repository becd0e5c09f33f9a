//! Purposes of the notes that are kept sealed next to the sessions. The purpose keeps one kind of note apart from another.

/// Marks of endings (`endings`), and of what is good once.
pub(crate) const MARK: &str = "mark";

/// Notes of revocations (`refresh`).
pub(crate) const REVOCATION: &str = "revocation";

/// Demands for a sign-in (`demands`).
pub(crate) const DEMAND: &str = "demand";

/// What receivers are to be told (`transmitter`).
pub(crate) const SIGNAL: &str = "signal";

/// Requests that may be repeated.
pub(crate) const REQUEST: &str = "request";

/// When what is good once arrived first, or an event acted first.
pub(crate) const ARRIVAL: &str = "arrival";
