//! `sessions`: lists, finds and ends users' sessions of a running service.
//!
//! Invariants
//! - The answer, a text or with `--json` one document, goes to standard output; all else to standard error.
//! - Text from a browser or a provider cannot control the terminal, not even in JSON.

mod end;
mod list;
mod search;

use std::io::Write as _;
use std::process::ExitCode;

use chassis::settings::{Reader, SettingNotice, SettingsError};
use chassis::terminal::{escape_controls, escaped_json};
use chassis::tool::{self, Tool, Work};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;

use super::failure::{CommandFailure, Exit};
use super::service::{ServiceAddress, with_address};

/// The command and its subcommands.
pub(super) struct SessionsTool;

/// An answer, for people and for programs.
#[derive(Debug)]
struct CommandOutput {
    text: String,
    json: Value,
    exit: Exit,
}

enum SessionsCommand {
    List(list::ListCommand),
    End(end::EndCommand),
    Search(search::SearchCommand),
}

impl Tool for SessionsTool {
    fn command(&self) -> Command {
        let json = switch(tool::JSON, "Prints one JSON document");
        Command::new("sessions")
            .about("Lists, finds and ends sessions of a running service")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(
                [list::command(), search::command(), end::command()].map(|command| {
                    with_address(command).arg(json.clone()).after_help(
                        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such session, 78 wrong settings.",
                    )
                }),
            )
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<SettingNotice>), SettingsError> {
        let (name, given) = given.subcommand().unwrap_or(("list", given));
        let json = given.get_flag(tool::JSON);
        let address = ServiceAddress::read(given, &mut reader);
        let command = match name {
            "end" => SessionsCommand::End(end::EndCommand::read(given, &mut reader)),
            "search" => SessionsCommand::Search(search::SearchCommand::read(given, &mut reader)),
            _ => SessionsCommand::List(list::ListCommand::read(given, &mut reader)),
        };
        let ((address, command), warnings) = reader.finish((address, command))?;
        let work = async move { report(json, run(&address, command).await) };
        Ok((Box::pin(work), warnings))
    }
}

async fn run(address: &ServiceAddress, command: SessionsCommand) -> Result<CommandOutput, CommandFailure> {
    let client = address.client()?;
    match command {
        SessionsCommand::List(command) => command.run(&client, address).await,
        SessionsCommand::Search(command) => command.run(&client, address).await,
        SessionsCommand::End(command) => command.run(&client, address).await,
    }
}

/// Prints the result. A closed standard output is not an error.
fn report(json: bool, outcome: Result<CommandOutput, CommandFailure>) -> ExitCode {
    let (text, exit) = match outcome {
        Ok(answer) if json => (escaped_json(&format!("{:#}\n", answer.json)), answer.exit),
        Ok(answer) => (answer.text, answer.exit),
        Err(failure) => {
            let lines: Vec<String> = failure.text.lines().map(escape_controls).collect();
            let _ = writeln!(std::io::stderr(), "session-svc: {}", lines.join("\n"));
            let document = json.then(|| tool::failure_document(&failure.reason, &failure.text));
            (document.unwrap_or_default(), failure.exit)
        }
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(exit as u8)
}

fn argument(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).value_name(value).help(help)
}

fn switch(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).action(ArgAction::SetTrue).help(help)
}

fn yes_argument(help: &'static str) -> Arg {
    switch("yes", help).short('y')
}

const SUBJECT_HELP: &str = "The user, as the provider identifies them (`sub`)";

fn subject_argument() -> Arg {
    argument("subject", "SUBJECT", SUBJECT_HELP)
}

fn issuer_argument() -> Arg {
    let help = "The provider that identifies them [default: OIDC_ISSUER_URL]";
    argument("issuer", "URL", help)
}

fn text(given: &ArgMatches, id: &str) -> String {
    given.get_one::<String>(id).cloned().unwrap_or_default()
}

/// The issuer of the flag or of the settings, or an empty text.
fn issuer(given: &ArgMatches, reader: &mut Reader<'_>) -> String {
    let issuer = given.get_one::<String>("issuer").cloned();
    let issuer = issuer.or_else(|| reader.optional_text("OIDC_ISSUER_URL"));
    issuer.unwrap_or_default()
}

fn check_issuer(issuer: &str) -> Result<(), CommandFailure> {
    if issuer.is_empty() {
        let text = "which provider? Give --issuer, or set OIDC_ISSUER_URL";
        return Err(CommandFailure::usage(text));
    }
    Ok(())
}
