//! The settings that describe the identity provider, the same for every service that speaks to it.
//!
//! Invariants: [`read()`] validates everything that concerns the provider and names every mistake at once; no message
//! holds a secret. The services put [`TOPIC`] into their tables and call [`read()`]; [`follow()`] takes over
//! credentials whose files change. There is one provider by plain variables, or several by a file of tables
//! with the same settings, validated by the same rules. [`checkup`] asks the provider whether they fit.

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
