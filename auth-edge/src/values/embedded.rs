//! Files that are part of the program.

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};

/// Returns a file by its path without a leading slash; `None` if there is no such file.
type Find = fn(&str) -> Option<Cow<'static, [u8]>>;

/// A folder of files within the program.
#[derive(Clone, Copy)]
pub struct EmbeddedFiles(Find);

impl EmbeddedFiles {
    /// The files that `find` returns.
    #[must_use]
    pub fn new(find: Find) -> Self {
        Self(find)
    }

    /// The content of a file.
    pub(crate) fn find(self, path: &str) -> Option<Cow<'static, [u8]>> {
        (self.0)(path.trim_start_matches('/'))
    }
}

impl Debug for EmbeddedFiles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedFiles")
    }
}

/// A program has one such folder.
impl PartialEq for EmbeddedFiles {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EmbeddedFiles {}
