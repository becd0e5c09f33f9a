//! Files of tables (TOML) that settings name.
//!
//! Invariants: reading continues after a mistake, so that all are reported, each with its line. A file with a
//! mistake is not used. An unknown key is a mistake. Deliberately absent: serde's `Deserialize`, which stops
//! at the first mistake.

mod table;
mod value;

use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::path::Path;

use toml::de::DeTable;

pub use table::Table;
pub use value::Value;

use crate::files;

/// The name of the outermost table.
const ROOT: &str = "file";

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct FileMistake {
    /// Line, counted from 1.
    pub line: usize,
    /// The mistake and what to write instead.
    pub text: String,
}

/// Every mistake in a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.in_one_line())]
pub struct FileMistakes(Vec<FileMistake>);

impl FileMistakes {
    /// A mistake of the file as a whole.
    #[must_use]
    pub fn of_file(text: &str) -> Self {
        let text = text.to_owned();
        Self(vec![FileMistake { line: 1, text }])
    }

    fn in_one_line(&self) -> String {
        let texts: Vec<String> = self.iter().map(FileMistake::to_string).collect();
        texts.join("; ")
    }
}

impl Deref for FileMistakes {
    type Target = [FileMistake];

    fn deref(&self) -> &[FileMistake] {
        &self.0
    }
}

/// Parses a file's text with `read`.
///
/// # Errors
/// All mistakes. If there are syntax errors, only these.
pub fn parse<T>(text: &str, read: impl FnOnce(&Table<'_>) -> T) -> Result<T, FileMistakes> {
    let document = Document {
        text,
        mistakes: RefCell::default(),
    };
    let (root, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        document.wrong(&error.span().unwrap_or_default(), error.message());
    }
    let value = syntax
        .is_empty()
        .then(|| Table::new(&document, ROOT, 0..0, root.get_ref()).read(read));
    let mut mistakes = document.mistakes.into_inner();
    mistakes.sort_by_key(|mistake| mistake.line);
    value
        .filter(|_| mistakes.is_empty())
        .ok_or(FileMistakes(mistakes))
}

/// Reads and parses a file.
///
/// # Errors
/// All mistakes, each with file and line; or the file cannot be read.
pub(super) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, FileMistakes>,
) -> Result<T, Vec<String>> {
    let shown = path.display();
    let bytes = files::read_bounded(path)
        .map_err(|error| vec![format!("the file {shown} cannot be read: {error}")])?;
    let text = String::from_utf8(bytes).map_err(|_| vec![format!("the file {shown} is not UTF-8 text")])?;
    parse(&text).map_err(|mistakes| {
        let texts = mistakes.iter().map(|mistake| format!("{shown}, {mistake}"));
        texts.collect()
    })
}

/// A text and what was found wrong in it so far.
struct Document<'t> {
    text: &'t str,
    mistakes: RefCell<Vec<FileMistake>>,
}

impl Document<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn wrong(&self, span: &Range<usize>, text: impl Into<String>) {
        let (line, text) = (self.line(span), text.into());
        self.mistakes.borrow_mut().push(FileMistake { line, text });
    }
}
