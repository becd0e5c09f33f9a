//! The embedded store on a disk that fills and empties: nothing acknowledged is lost, everybody can be signed out, no
//! refresh token is used up for an outcome that cannot be kept.
//!
//! The disk is a small tmpfs, so these tests need the right to mount one.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

#[path = "../contract/mod.rs"]
#[expect(dead_code, reason = "the other adapters use the rest")]
mod contract;

mod adapter;
mod disk;
mod service;
