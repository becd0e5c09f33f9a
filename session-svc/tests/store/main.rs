//! Session stores: every adapter under one contract, on real servers and disks, and on failures.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure here fails the test"
)]

#[path = "../support/certificates.rs"]
mod certificates;
#[path = "../support/cluster.rs"]
mod cluster;
mod contract;
mod damaged;
mod facts;
mod failover;
mod file;
mod file_damaged;
mod file_full;
mod file_killed;
#[path = "../support/lists.rs"]
mod lists;
mod memory;
#[path = "../support/proxy.rs"]
mod proxy;
mod redis;
mod redis_cluster;
mod redis_cluster_events;
mod redis_forgotten;
mod redis_lists;
mod redis_secured;
mod redis_sentinel;
#[path = "../support/redis.rs"]
mod redis_server;
#[path = "../support/sentinels.rs"]
mod sentinels;
mod valkey;
