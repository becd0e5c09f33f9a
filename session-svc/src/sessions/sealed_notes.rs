//! Purposes of the notes that are kept sealed beside the sessions, for whoever has to seal them again.
//!
//! A purpose that is missing here is found by `check-store` as unreadable, and its notes do not survive the removal of
//! the key they were sealed with.

/// The purpose of notes of revocations that are owed (`refresh`).
pub(crate) const REVOCATION: &str = "revocation";

/// Notes kept as records: marks of endings, and revocations that are owed.
pub const IN_RECORDS: &[&str] = &[super::endings::MARK, REVOCATION];

/// Notes kept as remembered values: requests that may be repeated, and when what is good once arrived first.
pub const REMEMBERED: &[&str] = &[super::create::REQUEST, super::once::ARRIVAL];
