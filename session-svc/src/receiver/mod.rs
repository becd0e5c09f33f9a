//! Listening to others: security events of the transmitters that are configured, and what becomes of sessions by them (OpenID Shared
//! Signals Framework 1.0, CAEP 1.0, RISC 1.0).
//!
//! Invariants
//! - Only a token that a configured transmitter has signed for one of our names does anything, and only to sessions of its provider.
//! - An event has done all it does before its transmitter hears that it was taken, so that none is lost with a process.
//! - What cannot be judged now is neither taken nor refused: its transmitter sends it again.
//!
//! Deliberately absent: HTTP, in which the edge has events delivered.

mod listened;
mod metrics;
mod policy;
mod settings;
mod subjects;

pub(crate) use listened::Received;
pub use listened::{NotListening, Receiver};
pub use metrics::EventCounts;
pub use settings::{
    ConfiguredTransmitter, Delivery, ListenedTransmitters, StreamCredentials, TransmittersFile, parse,
};
