//! Stored records that were cut, changed, swapped, put back or written by another release, and arguments no sane caller gives:
//! a defined error, never a panic, never another session, and nobody else's session touched.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

mod arguments;
#[path = "../support/lists.rs"]
mod lists;
mod payloads;
#[path = "../support/redis.rs"]
mod redis_server;
mod server;
mod support;
