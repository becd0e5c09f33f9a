//! An append-only file of audit records. The writer syncs it within a second, and reopens it after a rotation.
//!
//! Invariants
//! - The writer retries a failed write until it succeeds. Meanwhile, new records wait in the queue.
//! - Existing content of the file never changes.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prometheus::{IntCounter, Registry};

use crate::readiness::{Condition, Readiness, Weight};

/// The file mode. The group may read, so that a log collector can be in this group.
const MODE: u32 = 0o640;

/// The longest wait between a write and its sync. A power failure loses at most the records of this time.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two checks for a rotation of the file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The wait before a failed write is retried.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// The name of the condition in the answer of `/readyz`.
const CONDITION: &str = "audit_log";

/// The file of `AUDIT_LOG` cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the file {} of AUDIT_LOG cannot be opened", path.display())]
pub(crate) struct OpenError {
    path: PathBuf,
    source: io::Error,
}

/// The open file and the state of its writes.
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
    checked_at: Instant,
    unsynced_since: Option<Instant>,
    is_failing: bool,
    failures: IntCounter,
    condition: Condition,
}

impl AuditFile {
    /// Opens a file for appending. Counts failed writes in `registry` and reports them in `readiness`.
    ///
    /// # Errors
    /// The file cannot be opened, or the metric is registered already.
    pub(crate) fn open(
        path: &Path,
        registry: &Registry,
        readiness: &Readiness,
    ) -> Result<Self, Box<dyn Error>> {
        let opened = open_to_append(path).and_then(end_line);
        let file = opened.map_err(|source| OpenError {
            path: path.to_owned(),
            source,
        })?;
        let failures = IntCounter::new(
            "audit_write_failures_total",
            "Writes of audit records that failed and were retried.",
        )?;
        registry.register(Box::new(failures.clone()))?;
        let condition = readiness.condition(CONDITION, Weight::Informative);
        condition.mark_met();
        Ok(Self {
            path: path.to_owned(),
            file,
            checked_at: Instant::now(),
            unsynced_since: None,
            is_failing: false,
            failures,
            condition,
        })
    }

    /// Syncs records that are older than a second, and opens the file again if it was moved away.
    fn maintain(&mut self) -> io::Result<()> {
        let is_due = |since: Instant| since.elapsed() >= SYNC_INTERVAL;
        if self.unsynced_since.is_some_and(is_due) {
            self.sync()?;
        }
        if self.checked_at.elapsed() >= CHECK_INTERVAL {
            self.checked_at = Instant::now();
            if self.is_moved() {
                self.sync()?;
                self.open_again()?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.unsynced_since.is_some() {
            match self.file.sync_data() {
                // The system cannot sync a pipe or a terminal.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                synced => synced?,
            }
            self.unsynced_since = None;
        }
        Ok(())
    }

    fn open_again(&mut self) -> io::Result<()> {
        self.file = open_to_append(&self.path)?;
        self.unsynced_since = None;
        Ok(())
    }

    /// Whether the path now leads to another file, or to none.
    fn is_moved(&self) -> bool {
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::metadata(&self.path).map(identity).ok();
        named != self.file.metadata().map(identity).ok()
    }

    fn report_failure(&mut self, error: &io::Error) {
        self.failures.inc();
        if !std::mem::replace(&mut self.is_failing, true) {
            self.condition.unmet("records cannot be written");
            let error = error as &dyn Error;
            tracing::error!(
                error,
                "audit records cannot be written: they wait in memory, and are lost if this continues"
            );
        }
    }

    fn report_success(&mut self) {
        if std::mem::replace(&mut self.is_failing, false) {
            self.condition.mark_met();
            tracing::info!("audit records are written again");
        }
    }
}

impl Write for AuditFile {
    /// Writes all lines; blocks until it succeeds. If a write fails and the file was moved, it continues in a new
    /// file. There it repeats an interrupted line from its start.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while let Some(rest) = lines.get(written..).filter(|rest| !rest.is_empty()) {
            let outcome = match self.file.write(rest) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                outcome => outcome,
            };
            match outcome {
                Ok(count) => {
                    written += count;
                    self.unsynced_since.get_or_insert_with(Instant::now);
                    self.report_success();
                }
                Err(error) => {
                    self.report_failure(&error);
                    std::thread::sleep(RETRY_INTERVAL);
                    if self.is_moved() && self.open_again().is_ok() {
                        let line_end = lines[..written].iter().rposition(|byte| *byte == b'\n');
                        written = line_end.map_or(0, |at| at + 1);
                    }
                }
            }
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // The file has the lines. The next flush retries a failed sync or reopening.
        if let Err(error) = self.maintain() {
            self.report_failure(&error);
        }
        Ok(())
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(MODE)
        .open(path)
}

/// Adds a newline to an incomplete last line, which an earlier process left when it was killed.
fn end_line(mut file: File) -> io::Result<File> {
    let length = file.metadata()?.len();
    // A pipe has no length and no last byte.
    if length > 0 {
        let mut last = [b'\n'];
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<AuditFile, Box<dyn Error>> {
        AuditFile::open(path, &Registry::new(), &Readiness::new())
    }

    #[test]
    fn a_file_is_appended_to_behind_a_half_line_and_opened_again_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "half").unwrap();
        let mut file = open(&path).unwrap();
        file.write_all(b"one\n").unwrap();
        std::fs::rename(&path, folder.path().join("audit.log.1")).unwrap();
        assert!(file.is_moved());
        file.checked_at = Instant::now().checked_sub(CHECK_INTERVAL).unwrap();
        file.flush().unwrap();
        file.write_all(b"two\n").unwrap();
        assert_eq!(
            (read("audit.log.1").as_str(), read("audit.log").as_str()),
            ("half\none\n", "two\n")
        );
        assert!(!file.is_moved());
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let failed = open(Path::new("/nowhere/at/all/audit.log")).err().unwrap();
        assert!(failed.to_string().contains("/nowhere/at/all/audit.log"));
    }
}
