//! The management of streams and the fetching of events, against a transmitter that misbehaves in one respect at a time.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

mod credentials;
mod management;
mod polling;
mod support;
