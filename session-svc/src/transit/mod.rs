//! Reads the key ring. Keys that Vault's transit engine wrapped are unwrapped into memory; OpenBao has the same API.
//!
//! Invariants
//! - An unwrapped key stays in memory. No file, log record or error contains it.
//! - The service asks Vault at the start, and when the list of keys has a key that it has not unwrapped yet. Sealing
//!   and opening of sessions never wait for Vault.
//! - An outage of Vault is retried; an answer that no retry changes is an error.
//!
//! Why only the keys go through Vault: docs/decisions/cryptography.md.

mod client;
mod key_loader;

pub(crate) use client::{Login, TransitSettings};
pub(crate) use key_loader::{KeyLoader, KeysError, is_any_wrapped};
