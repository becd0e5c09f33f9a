//! The session service: stores encrypted sessions and issues valid access tokens.
//!
//! The modules and their dependencies: `docs/architecture.md`, "session-svc".

#[macro_use]
mod named;

pub mod callers;
#[cfg(test)]
#[path = "../tests/support/certificates.rs"]
mod certificates;
mod error;
pub mod grpc;
pub mod operator;
pub mod receiver;
pub mod refresh;
pub mod session;
pub mod session_store;
pub mod sessions;
pub mod settings;
pub mod start;
pub mod store;
mod store_condition;
mod transit;
pub mod transmitter;
pub mod vault;
