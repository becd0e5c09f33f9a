//! The operator's commands as an operator meets them: the real binary, against a service that runs and the store it
//! keeps its sessions in.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

#[path = "../support/certificates.rs"]
mod certificates;
mod check_store;
#[path = "../support/cluster.rs"]
mod cluster;
mod documents;
mod foreign;
#[path = "../support/redis.rs"]
mod redis_server;
mod rekey;
mod sessions;
mod support;
