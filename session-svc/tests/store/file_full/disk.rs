//! A disk of a given size, and other files that fill it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1024 * 1024;

/// A separate tmpfs, unmounted when dropped.
pub(crate) struct Disk {
    directory: tempfile::TempDir,
}

impl Disk {
    pub(crate) fn of_mib(size: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}m"), "tmpfs"])
            .arg(directory.path())
            .status()
            .unwrap();
        assert!(mounted.success(), "these tests need the right to mount a tmpfs");
        Self { directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The path of the store.
    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("sessions")
    }

    /// Fills the disk, as logs do.
    pub(crate) fn fill(&self) {
        let mut other = File::options()
            .append(true)
            .create(true)
            .open(self.other())
            .unwrap();
        let mut chunk = MIB as usize;
        while chunk > 0 {
            if other.write_all(&vec![7; chunk]).is_err() {
                chunk /= 2;
            }
        }
    }

    /// Frees the space.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.other()).unwrap();
    }

    fn other(&self) -> PathBuf {
        self.path().join("other")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a killed process may have it open for a moment.
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.directory.path())
            .status();
    }
}
