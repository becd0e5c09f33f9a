//! `signals`: the streams of security events of the transmitters in `SESSION_TRANSMITTERS`, made and looked after at their
//! transmitters (OpenID Shared Signals Framework 1.0, section 8).
//!
//! Invariants
//! - A stream counts as created once its record is in the store; one that cannot be recorded is deleted again.
//! - What pushes are authorized by, and what a verification repeats, is never shown.
//! - The store is opened as `check-store` does: Redis is shared with running services, a file has to be free.

mod access;
mod create;
mod delete;
mod show;
mod status;
mod stream;
mod verify;

use chassis::settings::{Reader, SettingsError, Warning};
use chassis::terminal::shown;
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgMatches, Command};
use oidc::StreamStatus;

use super::output::{self, CommandFailure, CommandOutput};
use access::SignalsAccess;

/// The command and those below it.
pub(super) struct SignalsTool;

enum SignalsCommand {
    List,
    Create(create::CreateCommand),
    Show,
    Verify(verify::VerifyCommand),
    Set(StreamStatus),
    Delete(delete::DeleteCommand),
}

impl Tool for SignalsTool {
    fn command(&self) -> Command {
        let of_one = [
            create::command(),
            Command::new("show").about("Shows a stream, here and at its transmitter"),
            verify::command(),
            Command::new("pause").about("Has a transmitter hold its events"),
            Command::new("resume").about("Has a transmitter send its events again"),
            delete::command(),
        ];
        let of_one = of_one.map(|command| command.arg(transmitter_argument()));
        let list = Command::new("list").about("Lists the transmitters and their streams");
        let all = [list].into_iter().chain(of_one);
        Command::new("signals")
            .about("Creates, shows, verifies, pauses and deletes streams of security events")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(all.map(|command| {
                command.arg(output::json_flag()).after_help(
                    "The transmitters are those of SESSION_TRANSMITTERS, the store is SESSION_STORE. Redis is shared with running \
                     services; a file has to be free: stop its service first. Exit codes: 0 done, 1 failed, 2 used wrongly, \
                     3 no such stream, 78 wrong settings.",
                )
            }))
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let (name, given) = given.subcommand().unwrap_or(("list", given));
        let json = output::wants_json(given);
        let access = SignalsAccess::read(&mut reader);
        let wanted = given.try_get_one::<String>("transmitter").ok().flatten().cloned();
        let command = match name {
            "create" => SignalsCommand::Create(create::CreateCommand::read(given)),
            "show" => SignalsCommand::Show,
            "verify" => SignalsCommand::Verify(verify::VerifyCommand::read(given)),
            "pause" => SignalsCommand::Set(StreamStatus::Paused),
            "resume" => SignalsCommand::Set(StreamStatus::Enabled),
            "delete" => SignalsCommand::Delete(delete::DeleteCommand::read(given)),
            _ => SignalsCommand::List,
        };
        let (access, warnings) = reader.finish(access)?;
        let work = async move {
            let outcome = run(&access, wanted.as_deref(), command).await;
            output::conclude(json, outcome.map_err(harmless))
        };
        Ok((Box::pin(work), warnings))
    }
}

/// What a transmitter says of its streams cannot steer the terminal.
fn harmless(failure: CommandFailure) -> CommandFailure {
    CommandFailure {
        text: shown(&failure.text),
        ..failure
    }
}

/// A line for people.
fn line(text: &str) -> String {
    format!("{}\n", shown(text))
}

async fn run(
    access: &SignalsAccess,
    wanted: Option<&str>,
    command: SignalsCommand,
) -> Result<CommandOutput, CommandFailure> {
    if let SignalsCommand::List = command {
        let listed = async { show::listed(&access.open().await?).await };
        return output::unless_stopped(listed).await;
    }
    let transmitter = access.chosen(wanted)?;
    if let SignalsCommand::Verify(verify) = &command {
        verify.judge(access)?;
    }
    let opened = output::unless_stopped(access.open()).await?;
    match command {
        // What is begun is ended, so that no stream is left that nobody knows of.
        SignalsCommand::Create(create) => create.run(&opened, transmitter).await,
        SignalsCommand::Delete(delete) => delete.run(&opened, transmitter).await,
        SignalsCommand::Set(status) => status::set(&opened, transmitter, status).await,
        SignalsCommand::Verify(verify) => output::unless_stopped(verify.run(&opened, transmitter)).await,
        SignalsCommand::Show | SignalsCommand::List => {
            output::unless_stopped(show::shown(&opened, transmitter)).await
        }
    }
}

fn transmitter_argument() -> Arg {
    Arg::new("transmitter")
        .long("transmitter")
        .value_name("ID")
        .help("Which transmitter, by its id in SESSION_TRANSMITTERS [default: the only one there is]")
}
