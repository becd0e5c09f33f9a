//! Listening to others: security events of the transmitters that are configured, and what becomes of sessions by them (OpenID Shared
//! Signals Framework 1.0, CAEP 1.0, RISC 1.0).
//!
//! Invariants
//! - Only a token that a configured transmitter has signed for one of our names does anything, and only to sessions of its provider.
//! - An event has done all it does before its transmitter hears that it was taken, so that none is lost with a process.
//! - What cannot be judged now is neither taken nor refused: its transmitter sends it again.
//! - What is known of a stream is one sealed record in the store, which the operator's tool and all replicas share.
//! - Credentials, and what pushes are authorized by, are in no log, no error and no answer.
//!
//! Deliberately absent: HTTP, in which the edge has events delivered.

mod configured;
mod fetching;
mod metrics;
mod policy;
mod polling;
mod received;
mod settings;
mod signal_receiver;
pub mod stream_record;
mod subjects;
mod watched;

pub use configured::UnusableTransmitter;
pub(crate) use configured::{Delivery, ReadyTransmitter};
pub(crate) use received::Received;
pub use settings::{ListenedTransmitters, TransmittersFile, parse};
pub use signal_receiver::{NotListening, SignalReceiver};
pub use watched::StreamGauges;
