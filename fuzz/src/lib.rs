//! Unexpected input to the real programs: any bytes to any method of the session API, and anything a browser,
//! a provider or an impostor can send to the edge.
//!
//! [`rpc`], [`edge`] and [`upstream`] state the invariants. `cargo test` replays the committed seeds and
//! derived inputs, the same in every run. libfuzzer/ searches for others, guided by coverage.

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
