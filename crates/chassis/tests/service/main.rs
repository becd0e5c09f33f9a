//! The parts that run a service, as operators and clients see them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

#[path = "../../../../session-svc/tests/support/certificates.rs"]
mod certificates;
mod closing;
mod full;
mod program;
mod settings;
mod tls;
mod watch;
