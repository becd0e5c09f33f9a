//! What nobody meant to send, to the real programs: any bytes to any method of the session API, and whatever a browser, a
//! provider, or somebody who pretends to be one can send to the edge.
//!
//! [`rpc`], [`edge`] and [`upstream`] say what has to hold. `cargo test` replays the committed seeds and inputs derived from them, the same
//! ones in every run; libfuzzer/ looks for others, led by coverage.

#![expect(
    clippy::unwrap_used,
    reason = "what cannot go on has found something, or cannot look for it"
)]

pub mod edge;
mod mutate;
pub mod rpc;
mod target;
pub mod upstream;

pub use mutate::Mutator;
pub use target::{Target, fuzz, short_run};
