//! The session service: keeps sessions, encrypted, and hands out access tokens that work.
//!
//! Directions: `start` → `grpc`, `store` adapters, `refresh`, `vault` → `sessions` (use cases over ports) → `session`
//! (pure values).

pub mod grpc;
pub mod refresh;
pub mod session;
pub mod sessions;
pub mod settings;
pub mod start;
pub mod store;
pub mod vault;
