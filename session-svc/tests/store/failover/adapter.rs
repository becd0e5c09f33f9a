//! The load on a store itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use session_svc::store::{Inserted, KeyValueStore, Name, Record, Replaced, StoreError};

use super::load::{Retryable, Target};
use crate::contract::named;
use crate::lists::listed;

static NAMES: AtomicU64 = AtomicU64::new(1);

/// A store under load.
pub(crate) struct Adapter {
    store: Arc<dyn KeyValueStore>,
    run: u64,
}

impl Adapter {
    pub(crate) fn new(store: &Arc<dyn KeyValueStore>) -> Self {
        Self {
            store: Arc::clone(store),
            run: store.now_ms(),
        }
    }
}

fn parsed(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn retryable(error: StoreError) -> Retryable {
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    Retryable
}

#[async_trait]
impl Target for Adapter {
    async fn create(&self, person: &str) -> Result<String, Retryable> {
        let number = u128::from(self.run) << 64 | u128::from(NAMES.fetch_add(1, Ordering::Relaxed));
        let name = Name::from_bytes(number.to_be_bytes());
        let now_ms = self.store.now_ms();
        let record = Record {
            name,
            version: 1,
            expires_at_ms: now_ms + 600_000,
            created_at_ms: now_ms,
            indexes: vec![named(person)],
            payload: vec![7; 700],
        };
        let inserted = self.store.insert(record, b"created".to_vec()).await;
        assert_eq!(inserted.map_err(retryable)?, Inserted::Done);
        Ok(name.to_string())
    }

    async fn read(&self, name: &str) -> Result<Option<u64>, Retryable> {
        let found = self.store.load(parsed(name)).await.map_err(retryable)?;
        Ok(found.map(|record| record.version))
    }

    async fn write(&self, name: &str) -> Result<Option<u64>, Retryable> {
        let Some(record) = self.store.load(parsed(name)).await.map_err(retryable)? else {
            return Ok(None);
        };
        let expected = record.version;
        let next = Record {
            version: expected + 1,
            expires_at_ms: self.store.now_ms() + 600_000,
            ..record
        };
        let replaced = self.store.replace(next, expected, Some(b"rolled".to_vec())).await;
        match replaced.map_err(retryable)? {
            Replaced::Done => Ok(Some(expected + 1)),
            Replaced::Missing => Ok(None),
            // A write without an answer, or one that the new master never received.
            Replaced::Stale => Err(Retryable),
        }
    }

    async fn lists(&self, person: &str, name: &str) -> Result<bool, Retryable> {
        let listed = listed(&*self.store, named(person), 1_000)
            .await
            .map_err(retryable)?;
        Ok(listed.iter().any(|record| record.name == parsed(name)))
    }

    async fn end(&self, name: &str) -> Result<(), Retryable> {
        let removed = self.store.remove(parsed(name), b"ended".to_vec()).await;
        removed.map(drop).map_err(retryable)
    }
}
