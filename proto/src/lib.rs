//! The session API: messages, services, error reasons, and [`client::SessionClient`], the SDK for services that call it.
//!
//! The code under `src/gen` is made from the `.proto` files by `make gen` and committed; `make lint` fails when it differs.
//! Deliberately absent: any rule about sessions. This crate knows how to say things, not what is true.

pub mod client;
pub mod error;
mod redacted;
pub mod timestamp;

/// Messages and services of the package `session.v1`.
#[expect(
    clippy::allow_attributes,
    reason = "generated: the .proto files are the documentation"
)]
pub mod v1 {
    include!("gen/session.v1.rs");
}

/// Descriptors of the package and what it imports, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("gen/descriptors.bin");
