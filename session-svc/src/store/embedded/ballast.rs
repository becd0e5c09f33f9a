//! A file next to the store that holds room on its disk, and gives it up when there is no other.
//!
//! The engine writes next to what it replaces, so that a removal needs room first. Half of the ballast is given up for everything but
//! new sessions, the other half for endings alone.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use super::error::is_full;

/// Bytes held: each half is room for some fifty commits of the largest kind that are made without room.
const WHOLE: u64 = 8 * 1024 * 1024;

/// Bytes that are left for endings.
const HALF: u64 = WHOLE / 2;

/// Bytes that have to be free besides before the ballast is held again: room for some hundred sessions, or it would be given up again
/// at once.
const MARGIN: u64 = 1024 * 1024;

/// The file.
pub(super) struct Ballast {
    path: PathBuf,
}

/// What a write does with the room in the file. Where there is little room, the most that writes may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Gives it back: removes, or adds a mark that is forgotten within minutes.
    Ending,
    /// Writes in the place of what is there.
    Change,
    /// Takes more.
    Addition,
}

impl Ballast {
    /// The ballast of the store at this path.
    pub(super) fn of(store: &Path) -> Self {
        let mut path = store.as_os_str().to_owned();
        path.push(".ballast");
        Self { path: path.into() }
    }

    /// Takes all of it, if the disk has room for it and for some sessions. Returns what there is room for then.
    pub(super) fn hold(&self) -> io::Result<Kind> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&self.path)?;
        let held = file.metadata()?.len().min(WHOLE);
        let wanted = if held == WHOLE { WHOLE } else { WHOLE + MARGIN };
        match take(&mut file, held, wanted) {
            Ok(()) => {
                file.set_len(WHOLE)?;
                Ok(Kind::Addition)
            }
            Err(error) if is_full(&error) => {
                file.set_len(held)?;
                Ok(if held < HALF { Kind::Ending } else { Kind::Change })
            }
            Err(error) => Err(error),
        }
    }

    /// Gives up half of it, and the other half the next time. Returns what there is room for then; `None` if there was nothing to give up.
    pub(super) fn give_up(&self) -> io::Result<Option<Kind>> {
        let file = match OpenOptions::new().write(true).open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if file.metadata()?.len() > HALF {
            file.set_len(HALF)?;
            return Ok(Some(Kind::Change));
        }
        std::fs::remove_file(&self.path)?;
        Ok(Some(Kind::Ending))
    }
}

/// Allocates `length` bytes of a file that has `held`.
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
