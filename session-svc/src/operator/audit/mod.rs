//! `audit`: are written audit records whole, and under which name does a person stand in them?
//!
//! Works on files alone: no service and no store is asked.

mod subject;
mod verify;

use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{ArgMatches, Command};

use super::output;

/// The command and those below it.
pub(super) struct AuditTool;

enum AuditCommand {
    Verify(verify::VerifyCommand),
    Subject(subject::SubjectCommand),
}

impl Tool for AuditTool {
    fn command(&self) -> Command {
        Command::new("audit")
            .about("Verifies audit records that were written, and finds a person's in them")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(
                [verify::command(), subject::command()].map(|command| command.arg(output::json_flag())),
            )
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let (name, given) = given.subcommand().unwrap_or(("verify", given));
        let json = output::wants_json(given);
        let command = match name {
            "subject" => AuditCommand::Subject(subject::SubjectCommand::read(given, &mut reader)),
            _ => AuditCommand::Verify(verify::VerifyCommand::read(given, &mut reader)),
        };
        let (command, warnings) = reader.finish(command)?;
        let work = async move {
            let outcome = match command {
                AuditCommand::Verify(command) => output::unless_stopped(command.run()).await,
                AuditCommand::Subject(command) => Ok(command.run()),
            };
            output::conclude(json, outcome)
        };
        Ok((Box::pin(work), warnings))
    }
}
