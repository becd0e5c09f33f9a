//! The embedded store on a disk that fills and empties: it keeps all acknowledged writes, and all users can
//! sign out. No refresh token is used if its outcome cannot be stored.
//!
//! The disk is a small tmpfs, so these tests need the right to mount one.

mod adapter;
mod disk;
mod service;
