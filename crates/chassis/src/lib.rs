//! Shared parts of every service: settings from flags, environment and files; logs, audit log, traces,
//! metrics; the admin listener, readiness and draining; TLS with reloading, and a bounded HTTP server.
//!
//! Invariants: this crate knows no OpenID Connect, sessions or gRPC. Named constants bound every wait, size
//! and count. Secrets cannot reach a log line. Deliberately absent: dependency injection, plugins, a
//! configuration format of its own.

pub(crate) mod admin;
pub mod audit;
pub mod audit_log;
pub mod clock;
pub mod files;
pub mod findings;
pub(crate) mod logs;
pub mod memory;
pub mod metrics;
pub mod panics;
pub mod propagation;
pub mod random;
pub mod readiness;
pub mod runtime;
pub mod secret;
pub mod serve;
pub mod service;
pub mod settings;
pub mod terminal;
pub mod tls;
pub mod tool;
pub(crate) mod trace_id;
pub mod traces;
