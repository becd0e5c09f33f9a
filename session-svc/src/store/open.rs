//! Opens the store that the settings name.

use std::path::Path;
use std::sync::Arc;

use chassis::clock::Clock;
use chassis::tls::CertificateGauges;

use super::KeyValueStore;
use super::embedded::{DEFAULT_CAPACITY, EmbeddedStore, FileError};
use super::redis::{self, RedisStore, SetupError};
use super::url::StoreSettings;

/// Why a store cannot be opened. An engine that is only down is no error: the store opens and answers
/// `Unavailable` until the engine is back.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// These settings cannot set up Redis.
    #[error(transparent)]
    Redis(#[from] SetupError),
}

/// Opens the store that `settings` name. `clock` gives the time of an embedded store; a shared store has its
/// own clock. Needs a tokio runtime.
pub async fn open(
    settings: &StoreSettings,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn KeyValueStore>, OpenError> {
    open_from(settings, None, clock, None).await
}

/// Like [`open`]; `came_from` is the file of the settings. A shared store applies changes of its password or
/// servers in that file. `shown` reports the certificate that this service presents to the store.
///
/// # Errors
/// As for [`open`].
pub async fn open_from(
    settings: &StoreSettings,
    came_from: Option<&Path>,
    clock: Arc<dyn Clock>,
    shown: Option<CertificateGauges>,
) -> Result<Arc<dyn KeyValueStore>, OpenError> {
    Ok(match settings {
        StoreSettings::Memory => Arc::new(EmbeddedStore::in_memory(clock, DEFAULT_CAPACITY)?),
        StoreSettings::File(path) => Arc::new(EmbeddedStore::open(path, clock)?),
        StoreSettings::Redis(settings) => {
            Arc::new(Box::pin(RedisStore::open(settings, came_from, clock, shown)).await?)
        }
    })
}

/// Checks the files that a store needs, without opening the store or contacting its engine.
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
