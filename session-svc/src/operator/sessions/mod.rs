//! `sessions`: what a running service knows about people's sessions, and ending them.

mod end;
mod list;
mod resource;
mod show;

use std::process::ExitCode;

use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgMatches, Command};

use super::answer::{self, Answer, Failure};
use super::service::{Address, with_address};

/// The command and those below it.
pub(super) struct SessionsTool;

enum Wish {
    List(list::List),
    Show(show::Show),
    End(end::End),
}

impl Tool for SessionsTool {
    fn command(&self) -> Command {
        let below = [list::command(), show::command(), end::command()];
        Command::new("sessions")
            .about("Lists, shows and ends sessions of a running service")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(below.map(|command| {
                with_address(command).arg(answer::json_flag()).after_help(
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
        let json = answer::wants_json(given);
        let address = Address::read(given, &mut reader);
        let wish = match name {
            "list" => Wish::List(list::List::read(given, &mut reader)),
            "end" => Wish::End(end::End::read(given, &mut reader)),
            _ => Wish::Show(show::Show::read(given)),
        };
        let ((address, wish), warnings) = reader.finish((address, wish))?;
        let work = async move { concluded(json, answer::unless_stopped(granted(&address, wish)).await) };
        Ok((Box::pin(work), warnings))
    }
}

fn concluded(json: bool, outcome: Result<Answer, Failure>) -> ExitCode {
    answer::conclude(json, outcome)
}

async fn granted(address: &Address, wish: Wish) -> Result<Answer, Failure> {
    let client = address.client()?;
    match wish {
        Wish::List(wish) => wish.ask(&client, address).await,
        Wish::Show(wish) => wish.ask(&client, address).await,
        Wish::End(wish) => wish.ask(&client, address).await,
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

/// The issuer asked for, or the configured one.
fn issuer(given: &ArgMatches, reader: &mut Reader<'_>) -> Option<String> {
    text(given, "issuer").or_else(|| reader.optional_text("OIDC_ISSUER_URL"))
}

fn needed(issuer: Option<String>) -> Result<String, Failure> {
    issuer.ok_or_else(|| Failure::usage("which provider? Give --issuer, or set OIDC_ISSUER_URL"))
}
