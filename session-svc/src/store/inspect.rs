//! The operator's port: walks everything a store keeps, exchanges what is sealed, and says how the engine stands.
//!
//! Invariants
//! - A walk gives every entry that is there from its beginning to its end at least once; one that comes, goes or
//!   moves meanwhile may be given or not, and may be given twice.
//! - An exchange changes the sealed bytes and nothing else: version, expiry and indexes stay, nothing is published,
//!   and it is done only while the entry is byte for byte what the walk gave.
//!
//! Apart from [`SessionStore`], whose verbs are what serving sessions needs; no request walks a store.

use async_trait::async_trait;

use super::{Record, Replaced, SessionStore, StoreError};

/// A part of a store that is walked by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySpace {
    /// Records, of sessions and of what is kept like them.
    Records,
    /// Remembered values.
    Remembered,
    /// Indexes.
    Indexes,
}

/// Something sealed, as a walk found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// A record.
    Record(Record),
    /// A remembered value.
    Remembered {
        /// What it is remembered under, as the walk met it.
        name: String,
        /// The value.
        value: Vec<u8>,
    },
}

impl Sealed {
    /// The name it is kept under.
    pub fn name(&self) -> String {
        match self {
            Self::Record(record) => record.name.to_string(),
            Self::Remembered { name, .. } => name.clone(),
        }
    }

    /// The sealed bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Record(record) => &record.payload,
            Self::Remembered { value, .. } => value,
        }
    }
}

/// Something a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundItem {
    /// Something sealed.
    Sealed(Sealed),
    /// A record whose name or frame is not what this release writes.
    Unreadable {
        /// Its name, as the walk met it.
        name: String,
    },
    /// Something at a name of ours that is nothing of ours, such as another program's.
    Foreign,
    /// An index.
    Index {
        /// Its name, as the walk met it.
        name: String,
        /// Entries that have not expired.
        entries: usize,
        /// Those of them that lead to no record.
        without_record: usize,
    },
}

/// A page of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// What was found; may be empty before the end.
    pub found: Vec<FoundItem>,
    /// Gives the next page; `None` at the end.
    pub next: Option<String>,
}

/// How good or bad a fact is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assessment {
    /// As it should be.
    Fine,
    /// Works, but should be looked at: what to do.
    Warning(&'static str),
    /// Loses sessions or does not work: what to do.
    Problem(&'static str),
    /// May not be asked: which right is missing.
    Unknown(&'static str),
}

/// Something the engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What about, in lower case with underscores.
    pub name: &'static str,
    /// What it says; nothing secret.
    pub value: String,
    /// How good that is.
    pub standing: Assessment,
}

impl Fact {
    /// A fact that is as it should be.
    pub(crate) fn fine(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: value.into(),
            standing: Assessment::Fine,
        }
    }

    /// The same fact, standing otherwise.
    #[must_use]
    pub(crate) fn standing(self, standing: Assessment) -> Self {
        Self { standing, ..self }
    }
}

/// A store that an operator may look into.
#[async_trait]
pub trait InspectedStore: SessionStore {
    /// Walks a key space: about `limit` entries after the position given, or from the beginning.
    async fn walk(
        &self,
        key_space: KeySpace,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Walked, StoreError>;

    /// Replaces the sealed bytes of `was` by `bytes`, if it is still what it was. `Stale` if it was
    /// written since, `Missing` if it is gone.
    async fn exchange(&self, was: &Sealed, bytes: Vec<u8>) -> Result<Replaced, StoreError>;

    /// What the engine says of itself, every server of a shared one. `server_memory` is how many bytes each of them may take, where
    /// that is less than its machine has.
    async fn facts(&self, server_memory: Option<u64>) -> Result<Vec<Fact>, StoreError>;

    /// What a restart of the engine would lose, of these facts those that can be had at little cost.
    async fn restart_facts(&self) -> Result<Vec<Fact>, StoreError> {
        Ok(Vec::new())
    }
}

/// `record` with other sealed bytes.
pub(super) fn resealed(record: &Record, payload: Vec<u8>) -> Record {
    Record {
        name: record.name,
        version: record.version,
        expires_at_ms: record.expires_at_ms,
        created_at_ms: record.created_at_ms,
        indexes: record.indexes.clone(),
        payload,
    }
}
