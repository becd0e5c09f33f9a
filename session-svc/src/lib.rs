//! The session service: keeps sessions, encrypted, and hands out access tokens that work.
//!
//! What each module is and which may know which: `docs/architecture.md`, "session-svc".

#[macro_use]
mod named;

pub mod callers;
#[cfg(test)]
#[path = "../tests/support/certificates.rs"]
mod certificates;
mod error;
pub mod grpc;
pub mod keeper;
pub mod operator;
pub mod receiver;
pub mod refresh;
pub mod session;
pub mod sessions;
pub mod settings;
pub mod start;
pub mod store;
mod store_condition;
pub mod transmitter;
pub mod vault;
