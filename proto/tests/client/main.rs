//! The client against real servers on loopback.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod batches;
mod calls;
mod finding;
mod replica;
mod secured;
mod support;
mod watching;
