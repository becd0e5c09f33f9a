//! From settings to a store.

use std::sync::Arc;

use chassis::clock::Clock;

use super::SessionStore;
use super::file::{FileError, FileStore};
use super::memory::{DEFAULT_CAPACITY, MemoryStore};
use super::redis::{RedisStore, SetupError};
use super::url::StoreSettings;

/// Why a store cannot be opened. An engine that is only down for now is no reason: the store opens and
/// answers `Unavailable` until the engine is back.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Redis cannot be set up as asked.
    #[error(transparent)]
    Redis(#[from] SetupError),
}

/// Opens the store `settings` name. `clock` is the time of the embedded stores; a shared store has its own.
/// Needs a tokio runtime.
pub async fn open(
    settings: &StoreSettings,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn SessionStore>, OpenError> {
    Ok(match settings {
        StoreSettings::Memory => Arc::new(MemoryStore::new(clock, DEFAULT_CAPACITY)),
        StoreSettings::File(path) => Arc::new(FileStore::open(path, clock)?),
        StoreSettings::Redis(settings) => Arc::new(RedisStore::open(settings, clock).await?),
    })
}
