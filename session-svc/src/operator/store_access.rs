//! The store itself, opened by an operator: the settings it takes, what can go wrong, and whether its rights are enough.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chassis::clock::SystemClock;
use chassis::settings::Reader;
use ring::rand::SystemRandom;

use super::output::{CommandFailure, Exit, chain};
use crate::session::SessionId;
use crate::settings;
use crate::store::file::FileError;
use crate::store::url::{StoreSettings, Topology};
use crate::store::{LeaseName, OpenError, Record, SessionStore, StoreError, open};

/// How long the record of [`try_rights`] is kept should the command be killed, and its lease.
const PROBE_KEPT: Duration = Duration::from_secs(10);

/// The settings a store is opened by.
pub(super) struct StoreAccess {
    store: StoreSettings,
}

impl StoreAccess {
    /// Reads and judges them; a store that ends with its process is refused.
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let (store, _, _) = settings::store_and_keys(reader);
        let store = settings::with_ending_replicas(reader, store);
        if matches!(store, StoreSettings::Memory) {
            reader.wrong(
                "SESSION_STORE",
                "is memory:, which no other process can look into: name the store the service uses",
            );
        }
        Self { store }
    }

    /// From settings that were read.
    pub(super) fn new(store: StoreSettings) -> Self {
        Self { store }
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
    pub(super) async fn open(&self) -> Result<Arc<dyn SessionStore>, CommandFailure> {
        if let StoreSettings::File(path) = &self.store
            && !path.exists()
        {
            return Err(missing(path.clone()));
        }
        let store = open(&self.store, Arc::new(SystemClock))
            .await
            .map_err(|error| refused(&error))?;
        match store.check().await {
            // It answers, and sessions in it can be ended.
            Ok(()) | Err(StoreError::Full) => Ok(store),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

/// Does what serving does, with a record of its own that is gone afterwards: a user that lacks a right is refused.
///
/// # Errors
/// What was refused.
pub(super) async fn try_rights(store: &dyn SessionStore) -> Result<(), String> {
    let described = |error: StoreError| chain(&error);
    let name = SessionId::random(&SystemRandom::new()).map_err(|error| error.to_string())?;
    let name = name.handle().name();
    let now_ms = store.now_ms();
    let probe = Record {
        name,
        version: 1,
        expires_at_ms: now_ms.saturating_add(u64::try_from(PROBE_KEPT.as_millis()).unwrap_or(u64::MAX)),
        created_at_ms: now_ms,
        indexes: Vec::new(),
        payload: b"check".to_vec(),
    };
    // Watchers skip an event that is empty.
    store.insert(probe.clone(), Vec::new()).await.map_err(described)?;
    let written = store.load(name).await.map_err(described)?;
    let lease = LeaseName::Named(name);
    let lease = store
        .acquire_lease(lease, "check", PROBE_KEPT)
        .await
        .map_err(described)?;
    if let Some(lease) = lease {
        store.release_lease(&lease).await.map_err(described)?;
    }
    let removed = store.remove(name, Vec::new()).await.map_err(described)?;
    match written.as_ref() == Some(&probe) && removed.is_some() {
        true => Ok(()),
        false => Err("what was written is not what is read".to_owned()),
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
