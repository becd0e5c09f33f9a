//! What a service is run with, as operators and clients meet it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

#[path = "../../../../session-svc/tests/support/certificates.rs"]
mod certificates;
mod closing;
mod full;
mod program;
mod settings;
mod tls;
mod watch;
