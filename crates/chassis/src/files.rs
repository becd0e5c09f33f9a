//! Watching files for change, by looking at their content.
//!
//! Polling follows what Kubernetes does to mounted Secrets (a symbolic link is swapped, no event reaches the old
//! file) and works on every file system. Invariant: a file that cannot be read, or is too large, is no change.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;

/// How often a watched file is looked at: half of the ten seconds within which a change must be in use.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The largest file read at all: settings, key rings and certificate chains are far below 1 MiB.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Watches several files as one value, every `every`: calls `on_change` with their contents. The first look is a change. Needs a tokio
/// runtime; ends with it or when the handle is aborted.
pub fn watch<F>(every: Duration, paths: Vec<PathBuf>, mut on_change: F) -> JoinHandle<()>
where
    F: FnMut(&[Vec<u8>]) + Send + 'static,
{
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (hasher, mut known, mut unreadable) = (RandomState::new(), None, false);
        loop {
            ticks.tick().await;
            let looked_at = paths.clone();
            let read = tokio::task::spawn_blocking(move || read_all(&looked_at)).await;
            match read {
                Ok(Ok(contents)) => {
                    unreadable = false;
                    let seen = hasher.hash_one(&contents);
                    if known.replace(seen) != Some(seen) {
                        on_change(&contents);
                    }
                }
                Ok(Err((path, error))) if !unreadable => {
                    unreadable = true;
                    let path = path.display();
                    tracing::warn!(%path, error = &error as &dyn std::error::Error, "a watched file cannot be read: what was read before stays in use");
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    })
}

/// The mark that some editors put before UTF-8 text. It is never part of a secret, a table or a certificate.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a file of at most [`MAX_FILE_BYTES`], without a byte order mark. Errors: those of the operating system, and
/// `FileTooLarge`.
pub fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut content = Vec::new();
    std::fs::File::open(path)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the file is larger than 1 MiB",
        ));
    }
    if content.starts_with(BYTE_ORDER_MARK) {
        content.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(content)
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, (PathBuf, io::Error)> {
    paths
        .iter()
        .map(|path| read_bounded(path).map_err(|error| (path.clone(), error)))
        .collect()
}
