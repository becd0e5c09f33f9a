//! The store itself, opened by an operator: the settings it takes, and what can go wrong.

use std::path::PathBuf;
use std::sync::Arc;

use chassis::clock::SystemClock;
use chassis::secret::{Reloading, Secret};
use chassis::settings::Reader;

use super::output::{CommandFailure, Exit, chain};
use crate::settings;
use crate::store::file::FileError;
use crate::store::url::{StoreSettings, Topology};
use crate::store::{OpenError, SessionStore, StoreError, open};
use crate::vault::{KeyRing, Vault};

/// The settings a store is opened by.
pub(super) struct StoreAccess {
    store: StoreSettings,
    keys: Vec<Secret<String>>,
}

/// A store and what opens its texts.
pub(super) struct OpenedStore {
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) vault: Arc<Vault>,
}

impl StoreAccess {
    /// Reads and judges them; a store that ends with its process is refused.
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let (store, keys, _) = settings::store_and_keys(reader);
        let store = settings::with_ending_replicas(reader, store);
        if matches!(store, StoreSettings::Memory) {
            reader.wrong(
                "SESSION_STORE",
                "is memory:, which no other process can look into: name the store the service uses",
            );
        }
        Self { store, keys }
    }

    /// From settings that were read.
    pub(super) fn new(store: StoreSettings, keys: Vec<Secret<String>>) -> Self {
        Self { store, keys }
    }

    /// What kind of store it is.
    pub(super) fn kind(&self) -> &'static str {
        match &self.store {
            StoreSettings::Memory => "memory",
            StoreSettings::File(_) => "file",
            StoreSettings::Redis(redis) => match redis.topology {
                Topology::Single(_) => "redis",
                Topology::Sentinel { .. } => "redis-sentinel",
                Topology::Cluster(_) => "redis-cluster",
            },
        }
    }

    /// Opens it; a file has to be there.
    pub(super) async fn open(&self) -> Result<OpenedStore, CommandFailure> {
        if let StoreSettings::File(path) = &self.store
            && !path.exists()
        {
            return Err(missing(path.clone()));
        }
        let keys = KeyRing::parse(&self.keys)
            .map_err(|error| CommandFailure::new("keys", Exit::Failed, error.to_string()))?;
        let store = open(&self.store, Arc::new(SystemClock))
            .await
            .map_err(|error| refused(&error))?;
        match store.check().await {
            // It answers, and sessions in it can be ended.
            Ok(()) | Err(StoreError::Full) => {}
            Err(error) => return Err(unavailable(&error)),
        }
        Ok(OpenedStore {
            store,
            vault: Arc::new(Vault::new(Reloading::new(keys))),
        })
    }
}

/// What a command ends with when the store does not do its part.
pub(super) fn unavailable(error: &StoreError) -> CommandFailure {
    CommandFailure::new("store_unavailable", Exit::Failed, chain(error))
}

fn missing(path: PathBuf) -> CommandFailure {
    CommandFailure::new(
        "store_missing",
        Exit::Failed,
        format!(
            "{} does not exist: check the path in SESSION_STORE; the service makes the file when it first starts",
            path.display()
        ),
    )
}

fn refused(error: &OpenError) -> CommandFailure {
    match error {
        OpenError::File(FileError::InUse { path }) => CommandFailure::new(
            "store_in_use",
            Exit::Failed,
            format!(
                "{} is in use by a running service, and a file belongs to one process: stop the service first, or \
                 ask it with `session-svc sessions`",
                path.display()
            ),
        ),
        OpenError::File(FileError::Damaged { .. } | FileError::Empty { .. }) => {
            CommandFailure::new("store_damaged", Exit::Failed, chain(error))
        }
        other => CommandFailure::new("store_refused", Exit::Failed, chain(other)),
    }
}
