//! The settings of the identity provider, the same for every service that calls it.
//!
//! Invariants: [`read()`] validates everything about the provider and reports every mistake at once. No message
//! contains a secret. The services put [`TOPIC`] into their tables and call [`read()`]. [`follow()`] reloads
//! credentials when their files change. Plain variables describe one provider, and a file of tables several, with
//! the same settings and rules. [`checkup`] asks the provider whether the settings fit.

pub mod checkup;
mod credentials;
mod file;
mod follow;
mod keys;
mod measures;
mod one;
mod providers;
mod read;
mod table;

pub use follow::{CredentialFiles, follow};
pub use measures::measure;
pub use providers::{ConfiguredProvider, ConfiguredProviders};
pub use read::read;
pub use table::{PREFIX, PROVIDERS, TOPIC};
