//! Errors of the file and its engine.

use std::path::PathBuf;

use crate::store::StoreError;

/// Why a file cannot be opened as a session store.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Another process has the file.
    #[error("{} is in use by another process: stop it, or give each session service a file of its own (replicas share a redis store)", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory cannot be read, written or made.
    #[error("{} cannot be opened for reading and writing: create its directory and make it writable for this user", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is no room on its disk, and no ballast left to give up.
    #[error("there is no room for {}: make room on its disk", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file has no bytes at all. Whoever emptied it may have lost sessions: it is no new store.
    #[error("{} is empty, and no store is: put a backup in its place, or delete it to begin with a new store", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else.
    #[error("{} is not a session store of this version: check SESSION_STORE, or move it away to begin with a new store", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What the engine says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Part of the file was lost or changed, on its disk or before it got there.
    #[error("{} is damaged, and nothing in it was changed: put a backup in its place, or move it away to begin with a new store, which signs everybody out", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the engine says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Any engine error as the port names it: a full disk is `Full`, damage `Corrupt`, the rest may pass.
pub(super) fn store_error(error: impl Into<redb::Error>) -> StoreError {
    match error.into() {
        redb::Error::Io(source) if is_full(&source) => StoreError::Full,
        redb::Error::Corrupted(_) => StoreError::Corrupt,
        other => StoreError::Unavailable(Box::new(other)),
    }
}

/// No room left on the disk, in the quota, or for a file of this size.
pub(super) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}
