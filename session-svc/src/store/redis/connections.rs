//! What all connections of a store have in common: how they are made, and when they are of no use any more.

use std::sync::Arc;

use tokio::sync::watch;

use crate::store::url::RedisSettings;

use super::source::{ConnectionSource, SetupError};

/// The connections of one store.
pub(super) struct Connections {
    /// How new ones are made; a change makes those in use outdated.
    pub(super) source: watch::Sender<Arc<ConnectionSource>>,
    /// Told when all are let go, those of listeners and those that are being made included.
    pub(super) let_go: watch::Sender<()>,
    /// Told when one of them broke: most often its server ended, and the others have no server any more either.
    broken: watch::Sender<()>,
}

impl Connections {
    /// Prepares them; each connects when first used.
    pub(super) fn new(settings: &RedisSettings) -> Result<Arc<Self>, SetupError> {
        let let_go = watch::Sender::new(());
        let source = ConnectionSource::new(settings, &let_go)?;
        Ok(Arc::new(Self {
            source: watch::Sender::new(Arc::new(source)),
            let_go,
            broken: watch::Sender::new(()),
        }))
    }

    /// Connects as `settings` say from now on.
    pub(super) fn change(&self, settings: &RedisSettings) -> Result<(), SetupError> {
        let source = ConnectionSource::new(settings, &self.let_go)?;
        self.source.send_replace(Arc::new(source));
        Ok(())
    }

    /// Has every connection in use verified now.
    pub(super) fn verify_all(&self) {
        self.broken.send_replace(());
    }

    /// Changes when all are to be verified.
    pub(super) fn subscribe_broken(&self) -> watch::Receiver<()> {
        self.broken.subscribe()
    }

    /// Looks for the master, where there are Sentinels.
    pub(super) fn look(&self) {
        self.source.borrow().look();
    }
}
