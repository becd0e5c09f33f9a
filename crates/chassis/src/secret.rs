//! Secret values, and values that change while the process runs.
//!
//! Invariant: `Secret` has no `Display` and no serialisation, and its `Debug` prints `…`; reading it needs a
//! visible `expose`. Deliberately absent: wiping memory. TLS and HTTP libraries make copies.

pub mod key_ring;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::hmac;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use crate::audit;
use crate::files::{self, POLL_INTERVAL};

/// The HMAC key for comparisons. Comparing hashes does not reveal where two texts differ.
const COMPARED: &[u8] = b"vestibule compared secrets v1";

/// A value that logs and errors never show.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself, for the one call that needs it.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl Secret<String> {
    /// Compares in constant time: the duration does not reveal how much of `given` is right.
    #[must_use]
    pub fn is(&self, given: &str) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, COMPARED);
        let ours = hmac::sign(&key, self.0.as_bytes());
        hmac::verify(&key, given.as_bytes(), ours.as_ref()).is_ok()
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A value that is replaced as a whole while other threads read it; clones share it.
pub struct Reloading<T>(Arc<ArcSwap<T>>);

impl<T> Clone for Reloading<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Reloading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reloading(…)")
    }
}

impl<T: Send + Sync + 'static> Reloading<T> {
    /// Starts with `value`.
    pub fn new(value: T) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(value)))
    }

    /// The current value.
    pub fn load(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// Calls `read` with the current value, without a reference count that cores share.
    pub fn with<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.0.load())
    }

    /// Replaces the value for all clones.
    pub fn store(&self, value: T) {
        self.0.store(Arc::new(value));
    }

    /// Replaces the value when the file changes; checks it every `every` and follows symbolic links. If `parse`
    /// rejects new content, the old value stays, and a warning names `setting`. Needs a tokio runtime; ends with it.
    pub fn follow<E, P>(&self, every: Duration, setting: &'static str, path: &Path, mut parse: P)
    where
        E: Into<Box<dyn std::error::Error>>,
        P: FnMut(&str) -> Result<T, E> + Send + 'static,
    {
        let value = self.clone();
        let path: PathBuf = path.to_owned();
        // The first read counts as a change, so a change between reading the settings and this call is not lost.
        files::watch(every, vec![path.clone()], move |contents| {
            value.read_again(setting, &path, contents, &mut parse);
        });
    }

    /// Like [`Self::follow`], for a file that names other files (`named`): also reads it again when one of these
    /// changes. Never ends.
    pub async fn follow_all<E, P>(
        self,
        setting: &'static str,
        path: PathBuf,
        named: fn(&T) -> Vec<PathBuf>,
        parse: P,
    ) where
        E: Into<Box<dyn std::error::Error>>,
        P: Fn(&str) -> Result<T, E> + Clone + Send + 'static,
    {
        loop {
            let watched = named(&self.load());
            let paths = [vec![path.clone()], watched.clone()].concat();
            let renamed = Arc::new(Notify::new());
            let (value, path, parse) = (self.clone(), path.clone(), parse.clone());
            let on_rename = Arc::clone(&renamed);
            let _watching = AbortOnDropHandle::new(files::watch(POLL_INTERVAL, paths, move |contents| {
                value.read_again(setting, &path, contents, &parse);
                if named(&value.load()) != watched {
                    on_rename.notify_one();
                }
            }));
            renamed.notified().await;
        }
    }

    fn read_again<E>(
        &self,
        setting: &'static str,
        path: &Path,
        contents: &[Vec<u8>],
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) where
        E: Into<Box<dyn std::error::Error>>,
    {
        let content = contents.first().map(Vec::as_slice).unwrap_or_default();
        let text = std::str::from_utf8(content).map_err(|_| NotText.into());
        let read = text.and_then(|text| parse(text).map_err(Into::into));
        let outcome = read.map(|new| self.store(new));
        let outcome = outcome.as_ref().copied().map_err(|error| &**error);
        audit::reloaded(setting, Some(path), outcome);
    }
}

/// The file is not text.
#[derive(Debug, thiserror::Error)]
#[error("the file is not UTF-8 text")]
struct NotText;

/// Parses a list of secrets: separated by commas or line ends, trimmed, without empty members.
pub fn split_list(text: &str) -> Vec<Secret<String>> {
    let members = text
        .split([',', '\n', '\r'])
        .map(str::trim)
        .filter(|member| !member.is_empty());
    members.map(|member| Secret::new(member.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_known_by_all_of_it_alone() {
        let secret = Secret::new("Bearer abc".to_owned());
        assert!(secret.is("Bearer abc"));
        for other in ["", "Bearer ab", "Bearer abcd", "bearer abc"] {
            assert!(!secret.is(other), "{other}");
        }
    }

    #[test]
    fn a_secret_shows_nothing_of_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "…");
    }
}
