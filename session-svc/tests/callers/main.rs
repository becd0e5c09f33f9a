//! Who may call what: the service behind TLS, with real certificates, over real gRPC.

#![recursion_limit = "256"]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what went wrong by panicking"
)]

mod audit;
#[path = "../support/certificates.rs"]
mod certificates;
mod deadlines;
mod examples;
mod identities;
mod log;
mod open_to_all;
mod policy;
mod process;
mod raw;
#[path = "../support/redis.rs"]
mod redis;
mod reload;
mod support;
mod traces;
mod unreadable;
