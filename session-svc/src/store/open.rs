//! From settings to a store.

use std::path::Path;
use std::sync::Arc;

use chassis::clock::Clock;
use chassis::tls::ShownCertificate;

use super::SessionStore;
use super::embedded::{DEFAULT_CAPACITY, EmbeddedStore, FileError};
use super::redis::{self, RedisStore, SetupError};
use super::url::StoreSettings;

/// Why a store cannot be opened. An engine that is only down for now is no reason: the store opens and
/// answers `Unavailable` until the engine is back.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Redis cannot be set up by these settings.
    #[error(transparent)]
    Redis(#[from] SetupError),
}

/// Opens the store `settings` name. `clock` is the time of the embedded stores; a shared store has its own.
/// Needs a tokio runtime.
pub async fn open(
    settings: &StoreSettings,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn SessionStore>, OpenError> {
    open_from(settings, None, clock, None).await
}

/// As [`open`], with the file the settings came from: a shared store whose password or servers change there goes
/// over to them. The certificate it is shown is told of, where that is measured.
///
/// # Errors
/// As for [`open`].
pub async fn open_from(
    settings: &StoreSettings,
    came_from: Option<&Path>,
    clock: Arc<dyn Clock>,
    shown: Option<ShownCertificate>,
) -> Result<Arc<dyn SessionStore>, OpenError> {
    Ok(match settings {
        StoreSettings::Memory => Arc::new(EmbeddedStore::in_memory(clock, DEFAULT_CAPACITY)?),
        StoreSettings::File(path) => Arc::new(EmbeddedStore::open(path, clock)?),
        StoreSettings::Redis(settings) => {
            Arc::new(Box::pin(RedisStore::open(settings, came_from, clock, shown)).await?)
        }
    })
}

/// Whether the files a store needs can be used, as far as that shows without opening it and without asking its engine.
///
/// # Errors
/// As for [`open`].
pub(crate) fn check(settings: &StoreSettings) -> Result<(), OpenError> {
    match settings {
        StoreSettings::Memory => Ok(()),
        StoreSettings::File(path) => Ok(EmbeddedStore::check(path)?),
        StoreSettings::Redis(settings) => Ok(redis::check(settings)?),
    }
}
