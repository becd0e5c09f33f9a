//! A file of records: appended to, written through to the disk within a second, opened again when it is moved away.
//!
//! Invariants: a line is written whole or, after a failure, goes on where it stopped; nothing that is in the file is ever changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::line::{self, Parsed};

/// Who may read it besides its owner: the group, which collectors are in.
const MODE: u32 = 0o640;

/// How long what was written may be lost with the machine.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// How often it is looked whether the file is still the one of its name.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes at the end of a file in which its last whole record is looked for: some hundred records.
const TAIL_BYTES: u64 = 64 * 1024;

/// The last record of a file: what the chain of the next process goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastRecord {
    /// The chain it belongs to.
    pub(super) instance: String,
    /// Its number there.
    pub(super) sequence: u64,
    /// Its hash, in hexadecimal digits.
    pub(super) hash: String,
}

/// The file.
pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    looked_at: Instant,
    unsynced_since: Option<Instant>,
}

impl AuditFile {
    /// Opens a file to append to, and tells what it ends with.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Option<LastRecord>)> {
        let mut file = opened(path)?;
        let tail = tail(&mut file)?;
        if tail.last().is_some_and(|last| *last != b'\n') {
            // The process before was stopped within a line.
            file.write_all(b"\n")?;
        }
        let opened = Self {
            path: path.to_owned(),
            file,
            looked_at: Instant::now(),
            unsynced_since: None,
        };
        Ok((opened, last_record(&tail)))
    }

    /// Writes what there is room for, and tells how many bytes that were.
    ///
    /// # Errors
    /// Nothing was written.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced_since.get_or_insert_with(Instant::now);
        Ok(written)
    }

    /// How long until [`Self::keep`] has something to do.
    pub(super) fn due_in(&self) -> Duration {
        let since = self
            .unsynced_since
            .map(|since| SYNC_INTERVAL.saturating_sub(since.elapsed()));
        since.unwrap_or(LOOK_INTERVAL)
    }

    /// Writes through to the disk what is older than a second, and opens the file again if that of its name is another one now. To be
    /// called between two lines, for the rest of one belongs where its beginning is.
    ///
    /// # Errors
    /// The disk did not take it, or no file could be opened: the one before stays in use.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        if self
            .unsynced_since
            .is_some_and(|since| since.elapsed() >= SYNC_INTERVAL)
        {
            self.sync()?;
        }
        if self.looked_at.elapsed() >= LOOK_INTERVAL {
            self.looked_at = Instant::now();
            if self.is_moved() {
                self.reopen()?;
            }
        }
        Ok(())
    }

    /// Opens the file of the name.
    ///
    /// # Errors
    /// None could be opened: the one before stays in use.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.sync()?;
        self.open_again()
    }

    /// Opens the file of the name, whatever becomes of the one before.
    ///
    /// # Errors
    /// None could be opened: the one before stays in use.
    pub(super) fn open_again(&mut self) -> io::Result<()> {
        self.file = opened(&self.path)?;
        self.unsynced_since = None;
        Ok(())
    }

    /// Writes through to the disk.
    ///
    /// # Errors
    /// The disk did not take it.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced_since.is_some() {
            match self.file.sync_data() {
                // A pipe or a terminal: there is no disk.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                synced => synced?,
            }
            self.unsynced_since = None;
        }
        Ok(())
    }

    /// Whether the file of the name is another one now, or none.
    pub(super) fn is_moved(&self) -> bool {
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::metadata(&self.path).map(identity).ok();
        named != self.file.metadata().map(identity).ok()
    }
}

fn opened(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(MODE)
        .open(path)
}

fn tail(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    // What is no regular file, such as a pipe, has no end to look at.
    if length == 0 {
        return Ok(Vec::new());
    }
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

fn last_record(tail: &[u8]) -> Option<LastRecord> {
    tail.split(|byte| *byte == b'\n').rev().find_map(|text| {
        let Parsed::Record(line) = line::parse(std::str::from_utf8(text).ok()?) else {
            return None;
        };
        Some(LastRecord {
            instance: line.text("instance").to_owned(),
            sequence: line.number("sequence")?,
            hash: line.text("hash").to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "{\"target\":\"audit\",\"instance\":\"ab\",\"sequence\":4,\"prev\":\"\",\"hash\":\"0101010101010101010101010101010101010101010101010101010101010101\"}";

    #[test]
    fn the_last_whole_record_is_found_before_one_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, format!("{RECORD}\n{}", &RECORD[..40])).unwrap();
        let (mut file, last) = AuditFile::open(&path).unwrap();
        let expected = LastRecord {
            instance: "ab".to_owned(),
            sequence: 4,
            hash: "01".repeat(32),
        };
        assert_eq!(last, Some(expected));
        file.write(b"next\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{RECORD}\n{}\nnext\n", &RECORD[..40]));
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_again_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let (mut file, last) = AuditFile::open(&path).unwrap();
        assert_eq!(last, None);
        file.write(b"one\n").unwrap();
        std::fs::rename(&path, folder.path().join("audit.log.1")).unwrap();
        assert!(file.is_moved());
        file.reopen().unwrap();
        file.write(b"two\n").unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (read("audit.log.1").as_str(), read("audit.log").as_str()),
            ("one\n", "two\n")
        );
        assert!(!file.is_moved());
    }
}
