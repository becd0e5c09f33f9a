//! The open file: made, opened, and opened again after a commit failed; or what stands for one in memory.
//!
//! After a failed write the engine refuses all further ones until the file is opened again, which recovers it
//! to the last commit. Readers hold the file for the microseconds of a read, so that it can be let go.
//!
//! Invariants
//! - A new file appears under its name when it can be opened again, not before: an empty one is no new store.
//! - A damaged file is an error: the engine may panic over it, but only on a thread that is waited for.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use chassis::panics;
use redb::backends::InMemoryBackend;
use redb::{Database, DatabaseError, ReadTransaction, ReadableDatabase as _, StorageError, WriteTransaction};
use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};

use crate::store::StoreError;

use super::error::{FileError, is_full, store_error};
use super::tables::{self, Start};

/// Memory the engine may use for pages: the hot part of about twenty thousand sessions. The system's page
/// cache holds the rest.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// What every file begins with, by the engine's description of its format.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// A file, and the engine that has it open.
pub(super) struct OpenFile {
    path: PathBuf,
    is_in_memory: bool,
    engine: RwLock<Option<Database>>,
}

impl OpenFile {
    /// Opens or makes the file, and its tables.
    pub(super) fn open(path: &Path) -> Result<(Self, Start), FileError> {
        let (engine, start) = caught(path, |path| {
            let engine = match open_existing(path)? {
                Some(engine) => engine,
                None => create(path)?,
            };
            let start = start(path, &engine)?;
            Ok((engine, start))
        })?;
        Ok((Self::of(path, false, engine), start))
    }

    /// An empty one that goes with this process.
    pub(super) fn in_memory() -> Result<(Self, Start), FileError> {
        let path = Path::new("memory:");
        let mut builder = Database::builder();
        let opened = builder
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(InMemoryBackend::new());
        let engine = opened.map_err(|error| file_error(path, error))?;
        let start = start(path, &engine)?;
        Ok((Self::of(path, true, engine), start))
    }

    fn of(path: &Path, is_in_memory: bool, engine: Database) -> Self {
        Self {
            path: path.to_owned(),
            is_in_memory,
            engine: RwLock::new(Some(engine)),
        }
    }

    /// Runs `read` on what is committed now.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let engine = engine.as_ref().ok_or_else(closed)?;
        read(&engine.begin_read().map_err(store_error)?)
    }

    /// Runs `write` in a transaction and commits it or not, as `write` says.
    pub(super) fn write<T>(
        &self,
        write: impl FnOnce(WriteTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let engine = engine.as_ref().ok_or_else(closed)?;
        write(engine.begin_write().map_err(store_error)?)
    }

    /// Lets the file go and opens it again; what is in memory alone is never let go.
    pub(super) fn open_again(&self) -> Result<(), FileError> {
        if self.is_in_memory {
            return Err(unusable(&self.path)(ErrorKind::Unsupported.into()));
        }
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        // First closed, or the file would be in use, by ourselves.
        *engine = None;
        let opened = caught(&self.path, open_existing)?;
        *engine = Some(opened.ok_or_else(|| unusable(&self.path)(ErrorKind::NotFound.into()))?);
        Ok(())
    }
}

/// Makes the tables if they are not there.
fn start(path: &Path, engine: &Database) -> Result<Start, FileError> {
    let transaction = engine.begin_write().map_err(store_error);
    transaction.and_then(tables::start).map_err(|error| {
        let path = path.to_owned();
        match error {
            StoreError::Full => FileError::Full { path },
            StoreError::Unavailable(source) => FileError::Foreign { path, source },
            StoreError::Corrupt => FileError::Damaged {
                path,
                source: Box::new(error),
            },
        }
    })
}

/// Runs `work`, in which the engine may panic if the file at `path` is damaged.
fn caught<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let own = path.to_owned();
    panics::catch(move || work(&own)).unwrap_or_else(|panicked| {
        Err(FileError::Damaged {
            path: path.to_owned(),
            source: Box::new(panicked),
        })
    })
}

fn closed() -> StoreError {
    store_error(redb::Error::DatabaseClosed)
}

fn unusable(path: &Path) -> impl Fn(std::io::Error) -> FileError {
    |source| {
        let path = path.to_owned();
        match is_full(&source) {
            true => FileError::Full { path },
            false => FileError::Unusable { path, source },
        }
    }
}

/// Whether [`OpenFile::open`] finds what it needs, without a lock and without a change.
pub(super) fn check(path: &Path) -> Result<(), FileError> {
    if find(path)?.is_some() {
        return Ok(());
    }
    let directory = directory(path);
    // Opened with the slash, a file in its place is no directory.
    let directory = std::fs::metadata(directory.join("")).map(|_| directory);
    let writable = directory.and_then(|it| Ok(access(it, Access::WRITE_OK | Access::EXEC_OK)?));
    writable.map_err(unusable(path))
}

/// The file, if there is one; an error if it is none of ours.
fn find(path: &Path) -> Result<Option<File>, FileError> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unusable(path))?,
    };
    let path = path.to_owned();
    let about = file.metadata().map_err(unusable(&path))?;
    if about.len() == 0 && about.is_file() {
        return Err(FileError::Empty { path });
    }
    let mut head = [0; MAGIC.len()];
    if file.read_exact_at(&mut head, 0).is_err() || head != *MAGIC {
        let source = "it does not begin as one".into();
        return Err(FileError::Foreign { path, source });
    }
    Ok(Some(file))
}

/// Where the file is.
fn directory(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn open_existing(path: &Path) -> Result<Option<Database>, FileError> {
    let Some(file) = find(path)? else {
        return Ok(None);
    };
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
        .map_err(unusable(path))?;
    engine(path, file).map(Some)
}

/// Makes a file under another name and renames it.
fn create(path: &Path) -> Result<Database, FileError> {
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
    let in_use = || FileError::InUse {
        path: path.to_owned(),
    };
    // Where there are no locks, the engine does without as well.
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Err(in_use());
    }
    // What one that was killed while it made the file left behind.
    file.set_len(0).map_err(unusable(path))?;
    let engine = engine(path, file)?;
    match renameat_with(CWD, &beside, CWD, path, RenameFlags::NOREPLACE) {
        // Another process was faster.
        Err(rustix::io::Errno::EXIST) => return Err(in_use()),
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

/// The engine over a file of its own, or an empty one.
fn engine(path: &Path, file: File) -> Result<Database, FileError> {
    let mut builder = Database::builder();
    let opened = builder.set_cache_size(CACHE_BYTES).create_file(file);
    opened.map_err(|error| file_error(path, error))
}

/// What the engine says of a file, as an operator has to know it.
fn file_error(path: &Path, error: DatabaseError) -> FileError {
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
            _ => unusable(&path)(source),
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
