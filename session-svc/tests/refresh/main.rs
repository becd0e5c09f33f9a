//! Refreshing tokens over real parts: session services on ports of their own, Redis, and a provider that rotates
//! refresh tokens, notices their reuse, and misbehaves as told.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what went wrong by panicking"
)]

mod ahead;
mod clocks;
#[path = "../support/cluster.rs"]
mod cluster;
mod draining;
mod fencing;
mod full;
mod gate;
mod interleavings;
mod kept;
mod killed;
mod odd_responses;
mod outages;
mod parallel;
mod patience;
mod provider_sessions;
#[path = "../support/redis.rs"]
mod redis_server;
mod revocation;
#[path = "../support/sentinels.rs"]
mod sentinels;
mod several;
mod slow_store;
mod standing_store;
mod support;
mod turns;
mod unjudged;
mod waking;
