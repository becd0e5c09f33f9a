//! Watches files for changes by comparing their content.
//!
//! Polling works on every file system, and for Kubernetes Secrets, where a symbolic link is swapped and the
//! old file gets no event. Invariant: a file that is unreadable or too large counts as unchanged.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;

/// How often a watched file is read: half of the ten seconds within which a change must take effect.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The size limit of files. Settings, key rings and certificate chains are far below 1 MiB.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the files at once and then every `every`. Calls `on_change` with the contents of all of them, at first
/// and after each change. Needs a tokio runtime; ends with it, or when the handle is aborted.
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
                    tracing::warn!(%path, error = &error as &dyn std::error::Error, "a watched file cannot be read: its earlier content stays in use");
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    })
}

/// The byte order mark that some editors put before UTF-8 text. It is never part of a value.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a file of at most [`MAX_FILE_BYTES`] and removes the byte order mark. Errors: those of the operating
/// system, and `FileTooLarge`.
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
