//! The service over real gRPC, with an owned clock, a shared memory store and a provider that does as it is told.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what went wrong by panicking"
)]

mod access_tokens;
mod batches;
mod creating;
mod ending;
mod failing_store;
mod limit;
mod listing;
mod malformed;
mod reading;
mod requests;
mod sign_ins;
mod support;
mod token_races;
mod token_refresh;
mod updating;
mod watching;
