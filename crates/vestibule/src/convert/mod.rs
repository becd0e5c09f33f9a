//! The command `vestibule convert`: translates the configuration of oauth2-proxy or mod_auth_openidc.
//!
//! Invariants
//! - Every option of the input is in the report.
//! - No translation is weaker than its input. If a restriction has no counterpart, `routes.toml` has the key `review`,
//!   which the program rejects at start. A path that cannot be opened stays guarded.
//! - No secret is printed, and no file is overwritten. A value stays one line, or one TOML string.
//!
//! Deliberately absent: reading the files that an option names. They may be on another machine.

mod input;
mod output;
mod routes;
mod table;
#[cfg(test)]
mod tests;
mod translate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chassis::settings::{Reader, SettingNotice, SettingsError};
use chassis::terminal::escape_controls;
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgMatches, Command, value_parser};

/// The command `convert`.
pub(crate) struct Convert;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {text}")]
struct Mistake {
    place: String,
    text: String,
}

impl Mistake {
    fn new(place: impl ToString, text: impl ToString) -> Self {
        let (place, text) = (place.to_string(), text.to_string());
        Self { place, text }
    }
}

impl Tool for Convert {
    fn command(&self) -> Command {
        let path = |name, value| {
            Arg::new(name)
                .value_name(value)
                .value_parser(value_parser!(PathBuf))
        };
        let files = path("files", "FILE").required(true).num_args(1..);
        let output = path("output", "DIR").long("output").default_value(".");
        Command::new("convert")
            .about("Translates the configuration of oauth2-proxy or mod_auth_openidc into settings.env and routes.toml")
            .arg(files.help(
                "Files with options of oauth2-proxy (its configuration, variables or flags), or of Apache. \
                 A later file overrides an earlier one",
            ))
            .arg(output.help("Folder for the new files. It has to exist; the command overwrites no file"))
            .after_help("Exit codes: 0 translated, 1 lines with REVIEW need a decision, 2 wrong usage or unreadable input.")
    }

    fn reads_settings(&self) -> bool {
        false
    }

    fn prepare(
        &self,
        arguments: &ArgMatches,
        _reader: Reader<'_>,
    ) -> Result<(Work, Vec<SettingNotice>), SettingsError> {
        let files = arguments.get_many::<PathBuf>("files").into_iter().flatten();
        let files: Vec<PathBuf> = files.cloned().collect();
        let folder: PathBuf = arguments.get_one("output").cloned().unwrap_or_default();
        Ok((Box::pin(async move { run(&files, &folder) }), Vec::new()))
    }
}

fn run(files: &[PathBuf], folder: &Path) -> ExitCode {
    match convert(files, folder) {
        Ok((report, needs_review)) => {
            print!("{report}");
            ExitCode::from(u8::from(needs_review))
        }
        Err(mistake) => {
            eprintln!("vestibule: {}", escape_controls(&mistake.to_string()));
            ExitCode::from(2)
        }
    }
}

/// Writes the translation. Returns the report, and whether it needs a decision.
fn convert(files: &[PathBuf], folder: &Path) -> Result<(String, bool), Mistake> {
    let plan = translate::translate(input::read_all(files)?);
    output::write(&plan, folder)?;
    Ok((output::report(&plan), plan.needs_review()))
}
