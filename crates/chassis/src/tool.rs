//! Commands of a program besides serving, such as `session-svc check-store`.
//!
//! Invariants
//! - Without a command the program serves; a command never opens the service's listeners.
//! - Every command has all settings of the service as flags, so that `--store` means the same everywhere. A
//!   flag after the command overrides one before it.
//! - A command that takes [`JSON`] writes one JSON document to standard output, whether it succeeds or fails.
//! - A command validates only the settings it reads: listing sessions does not need the client secret.

use std::ffi::OsString;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use serde_json::json;

use crate::findings::Report;
use crate::settings::{Reader, SettingNotice, SettingsError};
use crate::terminal::escaped_json;

/// The work that remains once the settings are read.
pub type Work = Pin<Box<dyn Future<Output = ExitCode>>>;

/// The flag that asks for a JSON document.
pub const JSON: &str = "json";

/// The output of a failed command with [`JSON`]: `reason` for programs, `message` for people.
pub fn failure_document(reason: &str, message: &str) -> String {
    let document = json!({ "error": { "reason": reason, "message": message } });
    escaped_json(&format!("{document:#}\n"))
}

/// Whether a command was asked for JSON.
pub(crate) fn wants_json(arguments: &ArgMatches) -> bool {
    let below = arguments.subcommand().is_some_and(|(_, below)| wants_json(below));
    below || matches!(arguments.try_get_one::<bool>(JSON), Ok(Some(true)))
}

/// Whether the arguments seem to ask a command for JSON, although they could not be parsed.
pub(crate) fn seem_to_want_json(arguments: impl IntoIterator<Item = OsString>, tools: &[&dyn Tool]) -> bool {
    let arguments: Vec<OsString> = arguments
        .into_iter()
        .skip(1)
        .take_while(|one| one != "--")
        .collect();
    let names_a_command = |one: &OsString| tools.iter().any(|tool| one == tool.command().get_name());
    arguments.iter().any(names_a_command) && arguments.iter().any(|one| one == "--json")
}

/// A command of a program.
pub trait Tool: Sync {
    /// Its name, arguments and manual. Argument names are in lower case; variable names are for settings.
    fn command(&self) -> Command;

    /// Whether it reads settings of the program, so that those that follow from others are needed.
    fn reads_settings(&self) -> bool {
        true
    }

    /// Reads its settings and returns the work to do.
    ///
    /// # Errors
    /// Every mistake in the settings it read.
    fn prepare(
        &self,
        arguments: &ArgMatches,
        reader: Reader<'_>,
    ) -> Result<(Work, Vec<SettingNotice>), SettingsError>;
}

/// A command that checks what its settings name, and prints a report of findings.
pub struct ReportTool<S> {
    /// Its name.
    pub name: &'static str,
    /// Its description in the manual.
    pub about: &'static str,
    /// Further notes for operators.
    pub remarks: &'static str,
    /// Reads its settings.
    pub read: fn(&mut Reader<'_>) -> S,
    /// Checks what the settings name.
    pub examine: fn(S) -> Pin<Box<dyn Future<Output = Report>>>,
}

impl<S> Tool for ReportTool<S> {
    fn command(&self) -> Command {
        Command::new(self.name).about(self.about).after_help(format!(
            "{} Exit codes: 0 everything fits (there may be warnings), 1 something does not fit, 2 wrong usage, 78 wrong settings.",
            self.remarks
        ))
    }

    fn prepare(
        &self,
        _arguments: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<SettingNotice>), SettingsError> {
        let settings = (self.read)(&mut reader);
        let (settings, warnings) = reader.finish(settings)?;
        let report = (self.examine)(settings);
        Ok((Box::pin(async move { report.await.print() }), warnings))
    }
}
