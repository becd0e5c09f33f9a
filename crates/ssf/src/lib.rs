//! Security events of the OpenID Shared Signals Framework 1.0, in both directions: verifies the tokens of a
//! transmitter, and signs and pushes tokens to a receiver. Verifies Global Token Revocation requests too.
//!
//! Invariants
//! - No clock, no session, no HTTP server: callers pass the time as `now`, in seconds since the Unix epoch.
//! - A token counts only if it is bounded, strict JSON, for this receiver and signed by its transmitter.
//! - Names of users are in no `Debug` output, error or log line.
//!
//! Deliberately absent: polling (RFC 8936) and the stream API. Operators create streams at the vendor.

mod draft_subject;
mod error;
mod event;
#[cfg(test)]
mod fuzz_tests;
mod push;
mod retry_after;
mod revocation;
mod signer;
mod strict_json;
mod subject;
mod token;
mod transmitter;

pub use error::{ErrorCode, SecurityEventError};
pub use event::{SecurityEvent, StreamEvent};
pub use push::{PushError, PushFailure, SecurityEventPush};
pub use revocation::{RevocationToken, revocation_subject};
pub use signer::{SecurityEventSigner, UnusableSigningKey};
pub use subject::{EventSubject, SubjectIdentifier};
pub use token::SecurityEventToken;
pub use transmitter::{Transmitter, TransmitterSettings};
