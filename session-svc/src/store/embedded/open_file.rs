//! The open file: made, opened, and opened again after a commit failed; or what stands for one in memory.
//!
//! After a failed write the engine refuses all further ones until the file is opened again, which recovers it
//! to the last commit. Readers hold the file for the microseconds of a read, so that it can be let go.
//!
//! Invariants
//! - A new file appears under its name when it can be opened again, not before: an empty one is no new store.
//! - A damaged file is an error: the engine may panic over it, but only on a thread that is waited for.

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

/// Memory the engine may use for pages: the hot part of about twenty thousand sessions. The system's page
/// cache holds the rest.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// What every file begins with, by the engine's description of its format.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// A file, and the engine that has it open.
pub(super) struct OpenFile {
    /// None in memory.
    path: Option<PathBuf>,
    engine: RwLock<Option<Database>>,
}

impl OpenFile {
    /// Opens or makes the file, and its tables.
    pub(super) fn open(path: &Path) -> Result<(Self, Start), FileError> {
        caught(path, |path| {
            let engine = match open_existing(path)? {
                Some(engine) => engine,
                None => create(path)?,
            };
            Self::started(Some(path.to_owned()), engine)
        })
    }

    /// An empty one that goes with this process.
    pub(super) fn in_memory() -> Result<(Self, Start), FileError> {
        let mut builder = Database::builder();
        let opened = builder
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(InMemoryBackend::new());
        let opened = opened.map_err(|error| EngineError::from(error).into());
        let started = opened.and_then(|engine| Self::started(None, engine));
        started.map_err(|problem| problem.of(Path::new("memory:")))
    }

    /// Makes the tables if they are not there.
    fn started(path: Option<PathBuf>, engine: Database) -> Result<(Self, Start), FileProblem> {
        let transaction = engine.begin_write().map_err(EngineError::from)?;
        let start = tables::start(transaction)?;
        let engine = RwLock::new(Some(engine));
        Ok((Self { path, engine }, start))
    }

    /// Runs `read` on what is committed now.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, EngineError>,
    ) -> Result<T, StoreError> {
        self.with_engine(|engine| read(&engine.begin_read()?))
    }

    /// Runs `write` in a transaction and commits it or not, as `write` says.
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

    /// Lets the file go and opens it again; what is in memory alone is never let go.
    pub(super) fn open_again(&self) -> Result<(), FileError> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        // First closed, or the file would be in use, by ourselves.
        *engine = None;
        let opened = caught(path, |path| {
            open_existing(path)?.ok_or(Error::from(ErrorKind::NotFound).into())
        });
        *engine = Some(opened?);
        Ok(())
    }
}

/// Runs `work`, in which the engine may panic if the file at `path` is damaged.
fn caught<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> Result<T, FileProblem> + Send + 'static,
) -> Result<T, FileError> {
    let own = path.to_owned();
    let worked = panics::catch(move || work(&own));
    let worked = worked.unwrap_or_else(|panicked| Err(FileProblem::Damaged(Box::new(panicked))));
    worked.map_err(|problem| problem.of(path))
}

/// Whether [`OpenFile::open`] finds what it needs, without a lock and without a change.
pub(super) fn check(path: &Path) -> Result<(), FileProblem> {
    if find(path)?.is_some() {
        return Ok(());
    }
    let directory = directory(path);
    // Opened with the slash, a file in its place is no directory.
    std::fs::metadata(directory.join(""))?;
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(Error::from)?;
    Ok(())
}

/// The file, if there is one; an error if it is none of ours.
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
        return Err(FileProblem::Foreign("it does not begin as one".into()));
    }
    Ok(Some(file))
}

/// Where the file is.
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

/// Makes a file under another name and renames it.
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
    // Where there are no locks, the engine does without as well.
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Err(FileProblem::InUse);
    }
    // What one that was killed while it made the file left behind.
    file.set_len(0)?;
    let engine = engine(file)?;
    match renameat_with(CWD, &beside, CWD, path, RenameFlags::NOREPLACE) {
        // Another process was faster.
        Err(rustix::io::Errno::EXIST) => return Err(FileProblem::InUse),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(&beside, path)?,
        renamed => renamed.map_err(Error::from)?,
    }
    File::open(directory(path))?.sync_all()?;
    Ok(engine)
}

/// The engine over a file of its own, or an empty one.
fn engine(file: File) -> Result<Database, FileProblem> {
    let mut builder = Database::builder();
    let opened = builder.set_cache_size(CACHE_BYTES).create_file(file);
    Ok(opened.map_err(EngineError::from)?)
}
