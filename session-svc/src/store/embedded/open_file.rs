//! The open file: creates it, opens it, and reopens it after a failed commit. Also its counterpart in memory.
//!
//! After a failed write, the engine rejects all further ones until the file is reopened, which recovers the
//! last commit. Readers hold the file only for the microseconds of a read, so that it can be closed.
//!
//! Invariants
//! - A new file gets its name only when it can be reopened. An empty file is therefore never a new store.
//! - A damaged file is an error. The engine may panic on it, but only on a thread whose result is awaited.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use chassis::panics;
use redb::backends::InMemoryBackend;
use redb::{Database, Error as EngineError, ReadTransaction, ReadableDatabase as _, WriteTransaction};
use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};

use crate::store::StoreError;

use super::error::{FileError, FileProblem, store_error};
use super::tables::{self, Start};

/// Memory for the engine's page cache: the hot part of about twenty thousand sessions. The system's page
/// cache holds the rest.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// The first bytes of every file, by the engine's description of its format.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// A file, and the engine that opened it.
pub(super) struct OpenFile {
    /// None in memory.
    path: Option<PathBuf>,
    engine: RwLock<Option<Database>>,
}

impl OpenFile {
    /// Opens or creates the file and its tables.
    pub(super) fn open(path: &Path) -> Result<(Self, Start), FileError> {
        caught(path, |path| {
            let engine = match open_existing(path)? {
                Some(engine) => engine,
                None => create(path)?,
            };
            Self::started(Some(path.to_owned()), engine)
        })
    }

    /// An empty store in memory.
    pub(super) fn in_memory() -> Result<(Self, Start), FileError> {
        let mut builder = Database::builder();
        let opened = builder
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(InMemoryBackend::new());
        let opened = opened.map_err(|error| EngineError::from(error).into());
        let started = opened.and_then(|engine| Self::started(None, engine));
        started.map_err(|problem| problem.of(Path::new("memory:")))
    }

    /// Creates missing tables.
    fn started(path: Option<PathBuf>, engine: Database) -> Result<(Self, Start), FileProblem> {
        let transaction = engine.begin_write().map_err(EngineError::from)?;
        let start = tables::start(transaction)?;
        let engine = RwLock::new(Some(engine));
        Ok((Self { path, engine }, start))
    }

    /// Runs `read` on the last commit.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, EngineError>,
    ) -> Result<T, StoreError> {
        self.with_engine(|engine| read(&engine.begin_read()?))
    }

    /// Runs `write` in a transaction, and commits if `write` says so.
    pub(super) fn write<T>(
        &self,
        write: impl FnOnce(WriteTransaction) -> Result<T, EngineError>,
    ) -> Result<T, StoreError> {
        self.with_engine(|engine| write(engine.begin_write()?))
    }

    fn with_engine<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, EngineError>,
    ) -> Result<T, StoreError> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let engine = engine.as_ref().ok_or(EngineError::DatabaseClosed);
        engine.and_then(work).map_err(store_error)
    }

    /// Closes the file and opens it again. A store in memory stays open.
    pub(super) fn open_again(&self) -> Result<(), FileError> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        // Closed first, or our own process would still use the file.
        *engine = None;
        let opened = caught(path, |path| {
            open_existing(path)?.ok_or(Error::from(ErrorKind::NotFound).into())
        });
        *engine = Some(opened?);
        Ok(())
    }
}

/// Runs `work` and catches the engine's panics on a damaged file at `path`.
fn caught<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> Result<T, FileProblem> + Send + 'static,
) -> Result<T, FileError> {
    let own = path.to_owned();
    let worked = panics::catch(move || work(&own));
    let worked = worked.unwrap_or_else(|panicked| Err(FileProblem::Damaged(Box::new(panicked))));
    worked.map_err(|problem| problem.of(path))
}

/// Checks the preconditions of [`OpenFile::open`], without a lock and without a change.
pub(super) fn check(path: &Path) -> Result<(), FileProblem> {
    if find(path)?.is_some() {
        return Ok(());
    }
    let directory = directory(path);
    // Because of the trailing slash, this fails if the directory is in fact a file.
    std::fs::metadata(directory.join(""))?;
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(Error::from)?;
    Ok(())
}

/// The file, if it exists; an error if it is not a session store.
fn find(path: &Path) -> Result<Option<File>, FileProblem> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let about = file.metadata()?;
    if about.len() == 0 && about.is_file() {
        return Err(FileProblem::Empty);
    }
    let mut head = [0; MAGIC.len()];
    if file.read_exact_at(&mut head, 0).is_err() || head != *MAGIC {
        return Err(FileProblem::Foreign("its header is wrong".into()));
    }
    Ok(Some(file))
}

/// The directory of the file.
fn directory(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn open_existing(path: &Path) -> Result<Option<Database>, FileProblem> {
    let Some(file) = find(path)? else {
        return Ok(None);
    };
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    engine(file).map(Some)
}

/// Creates a file under another name and renames it.
fn create(path: &Path) -> Result<Database, FileProblem> {
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
    let file = options.open(&beside)?;
    // On a file system without locks, the engine works without them too.
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Err(FileProblem::InUse);
    }
    // Leftover of a process that was killed while it created the file.
    file.set_len(0)?;
    let engine = engine(file)?;
    match renameat_with(CWD, &beside, CWD, path, RenameFlags::NOREPLACE) {
        // Another process created the file first.
        Err(rustix::io::Errno::EXIST) => return Err(FileProblem::InUse),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(&beside, path)?,
        renamed => renamed.map_err(Error::from)?,
    }
    File::open(directory(path))?.sync_all()?;
    Ok(engine)
}

/// The engine on an existing or an empty file.
fn engine(file: File) -> Result<Database, FileProblem> {
    let mut builder = Database::builder();
    let opened = builder.set_cache_size(CACHE_BYTES).create_file(file);
    Ok(opened.map_err(EngineError::from)?)
}
