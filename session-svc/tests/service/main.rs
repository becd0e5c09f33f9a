//! The service over real gRPC. Top level: an owned clock, a shared memory store and a scripted provider.
//! Folders: `callers` (access rules), `refresh` (tokens on several replicas), `endings` (full or frozen
//! stores), `operator` (its commands), `operator_search` (the service for operators).

// The redis client's futures nest deeper than the compiler's default limit.
#![recursion_limit = "256"]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what went wrong by panicking"
)]

mod access_tokens;
mod api_tokens;
mod batches;
mod binding;
mod callers;
#[path = "../support/certificates.rs"]
mod certificates;
mod client_watching;
#[expect(dead_code, reason = "the tests of the store use the rest")]
#[path = "../support/cluster.rs"]
mod cluster;
mod creating;
mod ending;
mod endings;
mod failing_store;
mod limit;
mod listing;
mod malformed;
mod operator;
mod operator_search;
mod provider_files;
mod reading;
mod receiver;
#[expect(dead_code, reason = "the tests of the store use the rest")]
#[path = "../support/redis.rs"]
mod redis_server;
mod refresh;
mod requests;
mod rotation;
#[expect(dead_code, reason = "the tests of the store use the rest")]
#[path = "../support/sentinels.rs"]
mod sentinels;
mod sign_ins;
mod support;
mod token_races;
mod token_refresh;
mod transmitter;
mod updating;
mod watching;
