//! The open file: opened, and opened again after a commit failed.
//!
//! After a failed write the engine refuses all further ones until the file is opened anew, which recovers it
//! to the last commit. Readers hold the file for the microseconds of a read, so that it can be let go.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{Database, DatabaseError, ReadTransaction, ReadableDatabase as _, StorageError, WriteTransaction};

use crate::store::StoreError;

use super::{FileError, store_error};

/// Memory the engine may use for pages: the hot part of about twenty thousand sessions. The system's page
/// cache holds the rest.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// A file, and the engine that has it open.
pub(super) struct Opened {
    path: PathBuf,
    database: RwLock<Option<Database>>,
}

impl Opened {
    /// Opens or makes the file.
    pub(super) fn open(path: &Path) -> Result<Self, FileError> {
        let database = open_database(path)?;
        Ok(Self {
            path: path.to_owned(),
            database: RwLock::new(Some(database)),
        })
    }

    /// Runs `read` on what is committed now.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(closed)?;
        read(&database.begin_read().map_err(store_error)?)
    }

    /// Runs `write` in a transaction and ends it as `write` asks.
    pub(super) fn write<T>(
        &self,
        write: impl FnOnce(WriteTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(closed)?;
        write(database.begin_write().map_err(store_error)?)
    }

    /// Lets the file go and opens it anew.
    pub(super) fn open_again(&self) -> Result<(), FileError> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // First closed, or the file would be in use, by ourselves.
        *database = None;
        *database = Some(open_database(&self.path)?);
        Ok(())
    }
}

fn closed() -> StoreError {
    store_error(redb::Error::DatabaseClosed)
}

fn open_database(path: &Path) -> Result<Database, FileError> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

    let unusable = |source| FileError::Unusable {
        path: path.to_owned(),
        source,
    };
    let mut options = std::fs::OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(unusable)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
        .map_err(unusable)?;
    let opened = Database::builder().set_cache_size(CACHE_BYTES).create_file(file);
    opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => FileError::InUse {
            path: path.to_owned(),
        },
        DatabaseError::Storage(StorageError::Io(source))
            if !matches!(
                source.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
            ) =>
        {
            unusable(source)
        }
        other => FileError::Foreign {
            path: path.to_owned(),
            source: Box::new(other),
        },
    })
}
