//! The open file: made, opened, and opened again after a commit failed.
//!
//! After a failed write the engine refuses all further ones until the file is opened anew, which recovers it
//! to the last commit. Readers hold the file for the microseconds of a read, so that it can be let go.
//!
//! Invariants
//! - A new file appears under its name when it can be opened again, not before: an empty one is no new store.
//! - A file that was not closed has every page checked before it is used, so that a damaged one is reported at the start and
//!   not met again and again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use redb::{Database, DatabaseError, ReadTransaction, ReadableDatabase as _, StorageError, WriteTransaction};
use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};

use crate::store::StoreError;

use super::disk::{Backend, Disk};
use super::{FileError, store_error};

/// Memory the engine may use for pages: the hot part of about twenty thousand sessions. The system's page
/// cache holds the rest.
pub(super) const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// A file, and the engine that has it open.
pub(super) struct OpenFile {
    path: PathBuf,
    engine: RwLock<Option<Engine>>,
}

/// The engine, and the disk below it.
struct Engine {
    database: Database,
    disk: Arc<Disk>,
}

impl OpenFile {
    /// Opens or makes the file.
    pub(super) fn open(path: &Path) -> Result<Self, FileError> {
        let engine = match open_existing(path)? {
            Some(engine) => engine,
            None => create(path)?,
        };
        Ok(Self {
            path: path.to_owned(),
            engine: RwLock::new(Some(engine)),
        })
    }

    /// Runs `read` on what is committed now.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let engine = engine.as_ref().ok_or_else(closed)?;
        read(&engine.database.begin_read().map_err(store_error)?)
    }

    /// Runs `write` in a transaction and commits it or not, as `write` says.
    pub(super) fn write<T, E: From<StoreError>>(
        &self,
        write: impl FnOnce(WriteTransaction, &Disk) -> Result<T, E>,
    ) -> Result<T, E> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let engine = engine.as_ref().ok_or_else(closed)?;
        write(engine.database.begin_write().map_err(store_error)?, &engine.disk)
    }

    /// Lets the file go and opens it anew.
    pub(super) fn open_again(&self) -> Result<(), FileError> {
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        // First closed, or the file would be in use, by ourselves.
        *engine = None;
        let gone = || FileError::Unusable {
            path: self.path.clone(),
            source: ErrorKind::NotFound.into(),
        };
        *engine = Some(open_existing(&self.path)?.ok_or_else(gone)?);
        Ok(())
    }
}

fn closed() -> StoreError {
    store_error(redb::Error::DatabaseClosed)
}

fn unusable(path: &Path) -> impl Fn(std::io::Error) -> FileError {
    |source| FileError::Unusable {
        path: path.to_owned(),
        source,
    }
}

/// Whether [`OpenFile::open`] finds what it needs, without a lock and without a change.
pub(super) fn check(path: &Path) -> Result<(), FileError> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let directory = directory(path);
            // Opened with the slash, a file in its place is no directory.
            let directory = std::fs::metadata(directory.join("")).map(|_| directory);
            let writable = directory.and_then(|it| Ok(access(it, Access::WRITE_OK | Access::EXEC_OK)?));
            return writable.map_err(unusable(path));
        }
        opened => opened.map_err(unusable(path))?,
    };
    refuse_empty(path, &file)?;
    if Disk::is_foreign(&file) {
        return Err(FileError::Foreign {
            path: path.to_owned(),
            source: "it does not begin as one".into(),
        });
    }
    Ok(())
}

fn refuse_empty(path: &Path, file: &File) -> Result<(), FileError> {
    let about = file.metadata().map_err(unusable(path))?;
    if about.len() == 0 && about.is_file() {
        return Err(FileError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Where the file is.
fn directory(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn open_existing(path: &Path) -> Result<Option<Engine>, FileError> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unusable(path))?,
    };
    refuse_empty(path, &file)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
        .map_err(unusable(path))?;
    // Whoever has it open holds this lock, and its flags are theirs.
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Err(FileError::InUse {
            path: path.to_owned(),
        });
    }
    let check = Disk::was_left_open(&file).map_err(unusable(path))?;
    engine(path, file, check).map(Some)
}

/// Makes a file under another name and renames it.
fn create(path: &Path) -> Result<Engine, FileError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let file = options.open(&beside).map_err(unusable(path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            return Err(FileError::InUse {
                path: path.to_owned(),
            });
        }
        // Where there are no locks, the engine does without as well.
        Err(TryLockError::Error(_)) | Ok(()) => {}
    }
    // What one that was killed while it made the file left behind.
    file.set_len(0).map_err(unusable(path))?;
    let engine = engine(path, file, false)?;
    if engine.disk.is_short() {
        return Err(FileError::Full {
            path: path.to_owned(),
        });
    }
    match renameat_with(CWD, &beside, CWD, path, RenameFlags::NOREPLACE) {
        // Another process was faster.
        Err(rustix::io::Errno::EXIST) => {
            return Err(FileError::InUse {
                path: path.to_owned(),
            });
        }
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            std::fs::rename(&beside, path).map_err(unusable(path))?;
        }
        renamed => renamed.map_err(|error| unusable(path)(error.into()))?,
    }
    File::open(directory(path))
        .and_then(|directory| directory.sync_all())
        .map_err(unusable(path))?;
    Ok(engine)
}

fn engine(path: &Path, file: File, check: bool) -> Result<Engine, FileError> {
    let disk = Arc::new(Disk::new(file, check).map_err(|error| file_error(path, error))?);
    let database = Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(Backend(Arc::clone(&disk)))
        .map_err(|error| match file_error(path, error) {
            FileError::Unusable { path, .. } if disk.is_short() => FileError::Full { path },
            other => other,
        })?;
    disk.opened();
    Ok(Engine { database, disk })
}

/// What the engine says of a file, as an operator has to know it.
pub(super) fn file_error(path: &Path, error: DatabaseError) -> FileError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen => FileError::InUse { path },
        DatabaseError::Storage(StorageError::Io(source)) => match source.kind() {
            ErrorKind::UnexpectedEof => FileError::Damaged {
                path,
                source: Box::new(source),
            },
            ErrorKind::InvalidData => FileError::Foreign {
                path,
                source: Box::new(source),
            },
            _ => FileError::Unusable { path, source },
        },
        DatabaseError::Storage(error) => FileError::Damaged {
            path,
            source: Box::new(error),
        },
        other => FileError::Foreign {
            path,
            source: Box::new(other),
        },
    }
}
