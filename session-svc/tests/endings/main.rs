//! Endings on real servers that are full, out of order, or stand still.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure here fails the test"
)]

#[path = "../support/cluster.rs"]
mod cluster;
mod full;
#[path = "../support/redis.rs"]
mod redis_server;
mod still;
#[expect(dead_code, reason = "these tests use their part of it")]
#[path = "../refresh/support.rs"]
mod support;
