//! Purposes of the notes that are kept sealed beside the sessions, for whoever has to seal them again.
//!
//! A purpose that is missing here is found by `check-store` as unreadable, and its notes do not survive the removal of
//! the key they were sealed with.

/// Notes kept as records: marks of endings.
pub const IN_RECORDS: &[&str] = &[super::endings::MARK];

/// Notes kept as remembered values: requests that may be repeated.
pub const REMEMBERED: &[&str] = &[super::create::REQUEST];
