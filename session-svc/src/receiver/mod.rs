//! Receives security events of the configured transmitters and applies them to sessions (OpenID Shared Signals Framework 1.0, CAEP 1.0,
//! RISC 1.0).
//!
//! Invariants
//! - Only a token that a configured transmitter has signed for one of our names has an effect, and only on sessions of its provider.
//! - An event takes effect before its push is acknowledged, so that no crash loses it.
//! - An event that cannot be judged now is neither accepted nor refused: its transmitter sends it again.
//! - The Authorization header of pushes is in no log, no error and no answer.
//!
//! Deliberately absent: HTTP, which the edge serves; streams, which the operator creates at the transmitter; polling.

mod metrics;
mod policy;
mod settings;
mod signal_receiver;
mod subjects;

pub(crate) use policy::EventPolicy;
pub(crate) use settings::parse_header;
pub use settings::{ConfiguredTransmitter, TransmittersFile};
pub use signal_receiver::{ReceiverError, SignalReceiver};
