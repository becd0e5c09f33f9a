//! Receives security events of the configured transmitters and applies them to sessions (OpenID Shared
//! Signals Framework 1.0, CAEP 1.0, RISC 1.0). Ends all sessions of a user by one request (Global Token
//! Revocation).
//!
//! Invariants
//! - Only a configured transmitter's token for one of our names has an effect, on its provider's sessions alone.
//! - An event takes effect before its push is acknowledged, so that a crash loses no event.
//! - An event without a verdict is neither accepted nor rejected: its transmitter sends it again.
//! - The Authorization header of pushes appears in no log, error or answer.
//!
//! Deliberately absent: HTTP, which the edge serves; streams, which operators create at the transmitter; polling.

mod metrics;
mod policy;
mod revocation;
mod settings;
mod signal_receiver;
mod subjects;

pub(crate) use policy::EventPolicy;
pub(crate) use settings::parse_header;
pub use settings::{ConfiguredTransmitter, TransmittersFile};
pub use signal_receiver::{ReceiverError, SignalReceiver};
