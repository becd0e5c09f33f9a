//! The embedded store on a disk that fills and empties: nothing acknowledged is lost, everybody can be signed out, no
//! refresh token is used up for an outcome that cannot be kept.
//!
//! The disk is a small tmpfs, so these tests need the right to mount one.

mod adapter;
mod disk;
mod service;
