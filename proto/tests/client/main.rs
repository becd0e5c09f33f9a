//! The client against real servers on loopback, and its guide.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod batches;
mod calls;
mod cut_off;
mod finding;
mod forgotten;
mod guide;
mod replica;
mod secured;
mod support;
mod watching;
