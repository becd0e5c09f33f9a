//! The client against real servers on loopback.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod finding;
mod reading;
mod replica;
mod secured;
mod support;
mod watching;
