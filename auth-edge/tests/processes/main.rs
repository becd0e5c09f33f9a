//! The edge as a process: its memory, the clients it drops, and how it stops.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cgroup;
mod client;
mod connections;
mod memory;
mod process;
#[expect(dead_code, reason = "the product tests use more of it")]
#[path = "../product/support/session_service.rs"]
mod session_service;
mod stalled;
mod stopping;
