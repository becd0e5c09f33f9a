//! What a program does besides serving: commands behind its name, such as `session-svc check-store`.
//!
//! Invariants
//! - Without a command the program serves; a command never opens the service's listeners.
//! - Every setting of the service is a flag of every command too, so that `--store` means the same everywhere; the
//!   flag behind the command wins over the one before it.
//! - A command judges the settings it reads and no others: whoever lists sessions need not know the client secret.

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::settings::{Reader, Warning, Wrong};

/// What is left to do once the settings are read.
pub type Work = Pin<Box<dyn Future<Output = ExitCode>>>;

/// A command of a program.
pub trait Tool: Sync {
    /// Its name, arguments and manual. Names of arguments in lower case: variables' names are the settings'.
    fn command(&self) -> Command;

    /// Reads what it needs and says what is to be done.
    ///
    /// # Errors
    /// Every mistake in the settings it read.
    fn prepare(&self, given: &ArgMatches, reader: Reader<'_>) -> Result<(Work, Vec<Warning>), Wrong>;
}
