//! The settings that describe the identity provider, the same for every service that speaks to it.
//!
//! Invariants: [`read`] judges everything that concerns the provider and names every mistake at once; no message
//! holds a secret. The services put [`TOPIC`] into their tables and call [`read`]; [`follow`] takes over
//! credentials whose files change.

mod credentials;
mod follow;
mod read;
mod table;

pub use follow::{CredentialFiles, follow};
pub use read::read;
pub use table::TOPIC;
