//! A file next to the store that reserves disk space, and releases it when the disk is full.
//!
//! The engine copies on write, so even a removal needs space first. Half of the ballast is for everything but
//! new sessions, the other half only for endings.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use super::error::is_full;

/// Reserved bytes: each half is room for some fifty commits of the largest kind that runs without room.
const WHOLE: u64 = 8 * 1024 * 1024;

/// Bytes reserved for endings.
const HALF: u64 = WHOLE / 2;

/// Free bytes needed in addition before the ballast is reserved again: room for some hundred sessions.
/// Otherwise it would be released again at once.
const MARGIN: u64 = 1024 * 1024;

/// The ballast file.
pub(super) struct Ballast {
    path: PathBuf,
}

/// How a write uses disk space. As a state of the disk: the most demanding kind that is still allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WriteKind {
    /// Frees space: removes a record, or adds a mark that expires within minutes.
    Ending,
    /// Replaces existing data.
    Change,
    /// Needs more space.
    Addition,
}

impl Ballast {
    /// The ballast of the store at this path.
    pub(super) fn of(store: &Path) -> Self {
        let mut path = store.as_os_str().to_owned();
        path.push(".ballast");
        Self { path: path.into() }
    }

    /// Reserves all of it if the disk has room for it and some sessions. Returns what there is room for then.
    pub(super) fn hold(&self) -> io::Result<WriteKind> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&self.path)?;
        let held = file.metadata()?.len().min(WHOLE);
        let wanted = if held == WHOLE { WHOLE } else { WHOLE + MARGIN };
        match take(&mut file, held, wanted) {
            Ok(()) => {
                file.set_len(WHOLE)?;
                Ok(WriteKind::Addition)
            }
            Err(error) if is_full(&error) => {
                file.set_len(held)?;
                Ok(if held < HALF {
                    WriteKind::Ending
                } else {
                    WriteKind::Change
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Releases half of it, and the other half the next time. Returns what there is room for then; `None` if
    /// nothing was left.
    pub(super) fn give_up(&self) -> io::Result<Option<WriteKind>> {
        let file = match OpenOptions::new().write(true).open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if file.metadata()?.len() > HALF {
            file.set_len(HALF)?;
            return Ok(Some(WriteKind::Change));
        }
        std::fs::remove_file(&self.path)?;
        Ok(Some(WriteKind::Ending))
    }
}

/// Allocates `length` bytes for a file of `held` bytes.
fn take(file: &mut File, held: u64, length: u64) -> io::Result<()> {
    match fallocate(&*file, FallocateFlags::empty(), 0, length) {
        Err(rustix::io::Errno::OPNOTSUPP) => {
            file.seek(SeekFrom::Start(held))?;
            io::copy(&mut io::repeat(0).take(length - held), file)?;
            file.sync_data()
        }
        allocated => allocated.map_err(Into::into),
    }
}
