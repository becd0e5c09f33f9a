//! Errors of the file and its engine.

use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use redb::Error as EngineError;

use crate::store::StoreError;

/// A file that cannot be opened as a session store.
#[derive(Debug, thiserror::Error)]
#[error("the session file {} cannot be used", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be used.
    #[source]
    pub problem: FileProblem,
}

/// Why a file cannot be opened as a session store.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// Another process has the file.
    #[error(
        "it is in use by another process: stop it, or give each session service a file of its own (replicas share a redis store)"
    )]
    InUse,
    /// The file or its directory cannot be read, written or made.
    #[error(
        "it cannot be opened for reading and writing: create its directory and make it writable for this user"
    )]
    Unusable(#[source] std::io::Error),
    /// The disk is full, and no ballast is left to release.
    #[error("there is no room for it: make room on its disk")]
    Full,
    /// The file is empty. An empty file is not a new store, because sessions may have been lost.
    #[error(
        "it is empty, and a session store never is: put a backup in its place, or delete it to begin with a new store"
    )]
    Empty,
    /// The file is not a session store.
    #[error(
        "it is not a session store of this version: check SESSION_STORE, or move it away to begin with a new store"
    )]
    Foreign(#[source] Box<dyn Error + Send + Sync>),
    /// Part of the file was lost or changed, on this disk or in transfer.
    #[error(
        "it is damaged, and nothing in it was changed: put a backup in its place, or move it away to begin with a new store, which signs all users out"
    )]
    Damaged(#[source] Box<dyn Error + Send + Sync>),
}

impl FileProblem {
    /// The error of the file at `path`.
    pub(super) fn of(self, path: &Path) -> FileError {
        FileError {
            path: path.to_owned(),
            problem: self,
        }
    }
}

impl From<std::io::Error> for FileProblem {
    fn from(error: std::io::Error) -> Self {
        if is_full(&error) {
            Self::Full
        } else {
            Self::Unusable(error)
        }
    }
}

/// Classifies the engine's errors for an operator.
impl From<EngineError> for FileProblem {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::DatabaseAlreadyOpen => Self::InUse,
            EngineError::Io(source) => match source.kind() {
                ErrorKind::UnexpectedEof => Self::Damaged(Box::new(source)),
                ErrorKind::InvalidData => Self::Foreign(Box::new(source)),
                _ => source.into(),
            },
            EngineError::Corrupted(_) | EngineError::PreviousIo | EngineError::LockPoisoned(_) => {
                Self::Damaged(Box::new(error))
            }
            other => Self::Foreign(Box::new(other)),
        }
    }
}

/// Converts an engine error into the port's: a full disk is `Full`, damage is `Corrupt`, others may pass.
pub(super) fn store_error(error: EngineError) -> StoreError {
    match error {
        EngineError::Io(source) if is_full(&source) => StoreError::Full,
        EngineError::Corrupted(_) => StoreError::Corrupt,
        other => StoreError::Unavailable(Box::new(other)),
    }
}

/// The engine error for a record that this service cannot read.
pub(super) fn unreadable() -> EngineError {
    EngineError::Corrupted("a record".to_owned())
}

/// Whether the disk or quota is full, or the file is too large.
pub(super) fn is_full(error: &std::io::Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}
