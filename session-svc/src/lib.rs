//! The session service: keeps sessions, encrypted, and hands out access tokens that work.
//!
//! Directions: `start` → `grpc`, `store` adapters, `refresh`, `vault` → `sessions` (use cases over ports) → `keeper`
//! (sessions in the store) → `session` (pure values). `grpc` checks with `callers` who may call.
//! `operator` are the commands besides serving.

pub mod callers;
pub mod grpc;
pub mod keeper;
pub mod operator;
pub mod refresh;
pub mod session;
pub mod sessions;
pub mod settings;
pub mod start;
pub mod store;
mod store_condition;
pub mod vault;
