//! Checks every page of a file and leaves the file as it is.
//!
//! The engine believes a file that was closed well and meets a damaged page only when it needs it. Here it is made to check
//! all of them, over a copy in memory of whatever it would write.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::{BackendError, Database, StorageBackend};

use super::disk::{believe_nothing, is_whole};
use super::open_file::{CACHE_BYTES, file_error};
use super::{FileError, FileStore};

/// Bytes written at a time at least.
const BLOCK: usize = 4_096;

impl FileStore {
    /// Reads the file at `path` and checks every page of it. Nothing is written.
    ///
    /// # Errors
    /// What keeps it from being a store, damage above all.
    pub fn check_file(path: &Path) -> Result<(), FileError> {
        let unusable = |source| FileError::Unusable {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unusable)?;
        let about = file.metadata().map_err(unusable)?;
        if about.len() == 0 && about.is_file() {
            return Err(FileError::Empty {
                path: path.to_owned(),
            });
        }
        let copy = Copy {
            length: Mutex::new(about.len()),
            file,
            written: Mutex::default(),
        };
        let checked = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(copy);
        checked.map(drop).map_err(|error| file_error(path, error))
    }
}

/// A file whose changes are kept in memory.
#[derive(Debug)]
struct Copy {
    file: File,
    length: Mutex<u64>,
    /// Blocks written, by their number.
    written: Mutex<BTreeMap<u64, Vec<u8>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Copy {
    /// What a block holds now; beyond the end of the file zeros.
    fn block(&self, number: u64) -> std::io::Result<Vec<u8>> {
        if let Some(block) = locked(&self.written).get(&number) {
            return Ok(block.clone());
        }
        let (mut block, mut read) = (vec![0; BLOCK], 0);
        while read < BLOCK {
            let at = number * BLOCK as u64 + read as u64;
            match self.file.read_at(&mut block[read..], at) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(block)
    }

    /// The blocks a range lies in: their numbers, and where in the block and how much of it.
    fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let at = offset + done as u64;
            let within = usize::try_from(at % BLOCK as u64).unwrap_or_default();
            let count = (BLOCK - within).min(length - done);
            done += count;
            (count > 0).then_some((at / BLOCK as u64, within, count))
        })
    }
}

impl StorageBackend for Copy {
    fn len(&self) -> std::io::Result<u64> {
        Ok(*locked(&self.length))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        if offset.saturating_add(out.len() as u64) > *locked(&self.length) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        for (number, within, count) in Self::pieces(offset, out.len()) {
            let block = self.block(number)?;
            out[done..done + count].copy_from_slice(&block[within..within + count]);
            done += count;
        }
        if offset == 0 {
            believe_nothing(out);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> std::io::Result<()> {
        *locked(&self.length) = length;
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let mut done = 0;
        for (number, within, count) in Self::pieces(offset, bytes.len()) {
            let mut block = self.block(number)?;
            block[within..within + count].copy_from_slice(&bytes[done..done + count]);
            locked(&self.written).insert(number, block);
            done += count;
        }
        Ok(())
    }

    /// The service holds this lock too, so a file in use is recognized as such.
    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if !is_whole(start, end) {
            return Err(BackendError::Unsupported);
        }
        match self.file.try_lock_shared() {
            Ok(()) => Ok(true),
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(_)) => Err(BackendError::Unsupported),
        }
    }

    fn unlock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock().map_err(BackendError::Io)
    }
}
