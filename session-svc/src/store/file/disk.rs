//! The file below the engine: blocks on the disk are allocated when the file grows, not when it is written.
//!
//! The engine grows its file as a sparse one and learns that the disk is full in the middle of a commit, after which it has
//! to be opened anew; and it writes each change beside what it replaces, so that even a removal would need room.
//!
//! Invariants
//! - Whatever the engine may write to has its blocks on the disk already: no write of a page fails because the disk is full.
//! - A growth the disk has no space for is reported by [`Disk::is_short`] and fails nothing: the transaction that requested it is
//!   aborted, which takes the growth back. Were it committed, its writes would be refused.
//! - The file never gets shorter, so that no other program takes the space it once had. The engine copes with a file that is longer
//!   than it needs.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};
use rustix::fs::{FallocateFlags, fallocate};

use super::is_full;

/// What every file begins with.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Flags of the file, by the engine's description of its format ("god byte").
const FLAGS_AT: usize = MAGIC.len();

/// The file was not closed, or is open.
const RECOVERY_REQUIRED: u8 = 2;

/// The last commit was made in two phases, and the list of free pages it left may be believed unseen.
const TWO_PHASE_COMMIT: u8 = 4;

/// Where a new file says how many pages a region has, little-endian: a file grows by one or two regions.
const REGION_PAGES_AT: usize = 20;

/// The engine's own choice: regions of 4 GiB, below which a file doubles each time it grows.
const ENGINES_REGION_PAGES: u32 = 1 << 20;

/// Pages of 4 KiB in a region of a new file: it grows by at most two, 8 MiB or two thousand sessions, instead of doubling.
const REGION_PAGES: u32 = 1_024;

/// Space allocated beyond what the engine requests: as much as it may request next.
const AHEAD: u64 = 2 * REGION_PAGES as u64 * 4_096;

/// Zeros written at a time where the file system cannot allocate otherwise.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// A file whose space is allocated ahead.
#[derive(Debug)]
pub(super) struct Disk {
    file: File,
    engine: FileBackend,
    /// Bytes of the file, all of which have their blocks.
    allocated: AtomicU64,
    /// Bytes the engine believes there are.
    length: AtomicU64,
    /// Whether anything was written since the last flush.
    unflushed: AtomicBool,
    /// Whether the file was empty when opened, and its first header is still to be written.
    is_new: AtomicBool,
    /// Whether the engine is to check every page instead of believing the list of free ones.
    checking: AtomicBool,
}

impl Disk {
    /// Over an open file. With `check` the engine, while it opens the file, checks every page.
    pub(super) fn new(file: File, check: bool) -> Result<Self, DatabaseError> {
        let length = file.metadata()?.len();
        if length > 0
            && let Err(error) = fallocate(&file, FallocateFlags::empty(), 0, length)
            && is_full(&error.into())
        {
            // A copy may have holes, which may or may not be filled in time.
            tracing::error!("there is no room on the disk for all of the session file: make room");
        }
        Ok(Self {
            engine: FileBackend::new(file.try_clone()?)?,
            allocated: AtomicU64::new(length),
            length: AtomicU64::new(length),
            unflushed: AtomicBool::new(true),
            is_new: AtomicBool::new(length == 0),
            checking: AtomicBool::new(check),
            file,
        })
    }

    /// Whether the file was left open by whoever wrote it last, as one is that was killed. From now on it is: should the
    /// engine not survive opening it, the next to open it will know.
    pub(super) fn was_left_open(file: &File) -> std::io::Result<bool> {
        let mut head = [0; FLAGS_AT + 1];
        if file.read_exact_at(&mut head, 0).is_err() || !head.starts_with(MAGIC) {
            return Ok(false);
        }
        let was_left_open = head[FLAGS_AT] & RECOVERY_REQUIRED != 0;
        if !was_left_open {
            file.write_all_at(&[head[FLAGS_AT] | RECOVERY_REQUIRED], FLAGS_AT as u64)?;
        }
        Ok(was_left_open)
    }

    /// Whether the file does not begin as every one of ours.
    pub(super) fn is_foreign(file: &File) -> bool {
        let mut head = [0; FLAGS_AT];
        file.read_exact_at(&mut head, 0).is_err() || head != *MAGIC
    }

    /// The engine has opened the file.
    pub(super) fn opened(&self) {
        self.checking.store(false, Ordering::Release);
    }

    /// Whether the engine requested more than there is space for and has not shrunk since.
    pub(super) fn is_short(&self) -> bool {
        self.length.load(Ordering::Acquire) > self.allocated.load(Ordering::Acquire)
    }

    /// Whether the next growth may find no space: what a commit may need has to be tried for.
    pub(super) fn is_tight(&self) -> bool {
        let (length, allocated) = (
            self.length.load(Ordering::Acquire),
            self.allocated.load(Ordering::Acquire),
        );
        length + AHEAD > allocated
    }

    /// Allocates for a growth to `length`, and for the next one if there is as much.
    fn grow(&self, length: u64) -> std::io::Result<()> {
        let allocated = self.allocated.load(Ordering::Acquire);
        for wanted in [length + AHEAD, length] {
            if wanted <= allocated {
                return Ok(());
            }
            match self.take(allocated, wanted) {
                Ok(()) => {
                    self.unflushed.store(true, Ordering::Release);
                    self.allocated.store(wanted, Ordering::Release);
                    return Ok(());
                }
                Err(error) if is_full(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Allocates up to `length`, or none at all.
    fn take(&self, from: u64, length: u64) -> std::io::Result<()> {
        let allocated = match fallocate(&self.file, FallocateFlags::empty(), from, length - from) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.fill(from, length),
            other => other.map_err(Into::into),
        };
        if allocated.is_err() {
            // What was allocated of it before there was no more.
            self.file.set_len(from)?;
        }
        allocated
    }

    fn fill(&self, from: u64, length: u64) -> std::io::Result<()> {
        let mut at = from;
        while at < length {
            let count = ZEROS
                .len()
                .min(usize::try_from(length - at).unwrap_or(ZEROS.len()));
            self.file.write_all_at(&ZEROS[..count], at)?;
            at += count as u64;
        }
        Ok(())
    }
}

/// A disk as the engine wants it.
#[derive(Debug)]
pub(super) struct Backend(pub(super) Arc<Disk>);

impl StorageBackend for Backend {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.0.length.load(Ordering::Acquire))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.engine.read(offset, out)?;
        if offset == 0 && self.0.checking.load(Ordering::Acquire) {
            believe_nothing(out);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> std::io::Result<()> {
        if length > self.0.length.load(Ordering::Acquire) {
            self.0.grow(length)?;
        }
        self.0.length.store(length, Ordering::Release);
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        if !self.0.unflushed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.0
            .engine
            .sync_data()
            .inspect_err(|_| self.0.unflushed.store(true, Ordering::Release))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        if offset + bytes.len() as u64 > self.0.allocated.load(Ordering::Acquire) {
            return Err(ErrorKind::StorageFull.into());
        }
        // Before and after: a flush may run meanwhile.
        self.0.unflushed.store(true, Ordering::Release);
        let written = if offset == 0 && self.0.is_new.load(Ordering::Acquire) {
            self.0.engine.write(offset, &with_small_regions(bytes))
        } else {
            self.0.engine.write(offset, bytes)
        };
        self.0.unflushed.store(true, Ordering::Release);
        // The engine reads its header back once it has written it with the magic number.
        if written.is_ok() && offset == 0 && bytes.starts_with(MAGIC) {
            self.0.is_new.store(false, Ordering::Release);
        }
        written
    }

    fn close(&self) -> std::io::Result<()> {
        self.0.engine.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.engine.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.engine.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.engine.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.engine.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.engine.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.engine.query_lock_range(start, end)
    }
}

/// The header of a new file, with regions of our size if it is what this was written for.
fn with_small_regions(header: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    if let Some(pages) = header.get_mut(REGION_PAGES_AT..REGION_PAGES_AT + size_of::<u32>())
        && *pages == ENGINES_REGION_PAGES.to_le_bytes()
    {
        pages.copy_from_slice(&REGION_PAGES.to_le_bytes());
    }
    header
}

/// Makes the beginning of a file say that the list of free pages cannot be believed, so that every page is checked.
pub(super) fn believe_nothing(beginning: &mut [u8]) {
    if let Some(flags) = beginning.get_mut(FLAGS_AT) {
        *flags &= !TWO_PHASE_COMMIT;
    }
}

/// Whether a range is all of a file.
pub(super) fn is_whole(start: Bound<u64>, end: Bound<u64>) -> bool {
    matches!(start, Bound::Unbounded | Bound::Included(0)) && end == Bound::Unbounded
}
