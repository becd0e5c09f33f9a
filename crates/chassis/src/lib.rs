//! What every service needs to run and no service should write twice: settings from flags, environment and
//! files, logs, an audit log, traces, metrics, the admin listener, readiness, draining, TLS that reloads, and a bounded
//! HTTP server.
//!
//! Invariants: nothing in here knows OpenID Connect, sessions or gRPC; every wait, size and count is bounded by a
//! named constant; a secret has no way into a log line. Deliberately absent: dependency injection, plugins, a
//! configuration file format of its own.

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
