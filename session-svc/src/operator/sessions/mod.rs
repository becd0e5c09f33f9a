//! `sessions`: what a running service knows about people's sessions, and ending them.

mod end;
mod list;
mod resource;
mod show;

use std::process::ExitCode;

use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgMatches, Command};

use super::output::{self, CommandFailure, CommandOutput};
use super::service::{ServiceAddress, with_address};

/// The command and those below it.
pub(super) struct SessionsTool;

enum SessionsCommand {
    List(list::ListCommand),
    Show(show::ShowCommand),
    End(end::EndCommand),
}

impl Tool for SessionsTool {
    fn command(&self) -> Command {
        let below = [list::command(), show::command(), end::command()];
        Command::new("sessions")
            .about("Lists, shows and ends sessions of a running service")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(below.map(|command| {
                with_address(command).arg(output::json_flag()).after_help(
                    "Exit codes: 0 done, 1 failed, 2 used wrongly, 3 no such session, 78 wrong settings.",
                )
            }))
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let (name, given) = given.subcommand().unwrap_or(("show", given));
        let json = output::wants_json(given);
        let address = ServiceAddress::read(given, &mut reader);
        let command = match name {
            "list" => SessionsCommand::List(list::ListCommand::read(given, &mut reader)),
            "end" => SessionsCommand::End(end::EndCommand::read(given, &mut reader)),
            _ => SessionsCommand::Show(show::ShowCommand::read(given)),
        };
        let ((address, command), warnings) = reader.finish((address, command))?;
        let work = async move { concluded(json, output::unless_stopped(run(&address, command)).await) };
        Ok((Box::pin(work), warnings))
    }
}

fn concluded(json: bool, outcome: Result<CommandOutput, CommandFailure>) -> ExitCode {
    output::conclude(json, outcome)
}

async fn run(address: &ServiceAddress, command: SessionsCommand) -> Result<CommandOutput, CommandFailure> {
    let client = address.client()?;
    match command {
        SessionsCommand::List(command) => command.run(&client, address).await,
        SessionsCommand::Show(command) => command.run(&client, address).await,
        SessionsCommand::End(command) => command.run(&client, address).await,
    }
}

fn argument(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).value_name(value).help(help)
}

fn handle_argument(help: &'static str) -> Arg {
    argument("handle", "HANDLE", help)
}

fn subject_argument() -> Arg {
    argument(
        "subject",
        "SUBJECT",
        "The person, as the provider names them (`sub`)",
    )
}

fn issuer_argument() -> Arg {
    argument(
        "issuer",
        "URL",
        "The provider that names them so [default: OIDC_ISSUER_URL]",
    )
}

fn text(given: &ArgMatches, id: &str) -> Option<String> {
    given.get_one::<String>(id).cloned()
}

/// The issuer given, or the configured one.
fn issuer(given: &ArgMatches, reader: &mut Reader<'_>) -> Option<String> {
    text(given, "issuer").or_else(|| reader.optional_text("OIDC_ISSUER_URL"))
}

fn needed(issuer: Option<String>) -> Result<String, CommandFailure> {
    issuer.ok_or_else(|| CommandFailure::usage("which provider? Give --issuer, or set OIDC_ISSUER_URL"))
}
