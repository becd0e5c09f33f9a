//! The session API: messages, services, error reasons, and the SDK [`client::SessionClient`] for callers.
//!
//! `make gen` makes `src/gen` from the `.proto` files; `make lint` fails if they differ. Deliberately absent:
//! rules about sessions. This crate defines messages, not their validity.

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

/// Descriptors of the package and its imports, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("gen/descriptors.bin");
