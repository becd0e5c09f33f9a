//! `pause`: does nothing until it is told to stop, so that a container of this image stays for `kubectl exec`.

use std::process::ExitCode;

use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{ArgMatches, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::output::{self, CommandFailure, Exit};

/// The command.
pub(super) struct PauseTool;

impl Tool for PauseTool {
    fn command(&self) -> Command {
        Command::new("pause")
            .about("Does nothing until it is told to stop: keeps a container in which an operator can run the other commands")
            .after_help(
                "Reads no settings, opens nothing. SIGTERM and SIGINT end it. Exit codes: 0 told to stop, 1 signals cannot be heard, 2 used wrongly.",
            )
    }

    fn prepare(
        &self,
        _given: &ArgMatches,
        reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let ((), warnings) = reader.finish(())?;
        Ok((Box::pin(paused()), warnings))
    }
}

async fn paused() -> ExitCode {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        let failure = CommandFailure::new("signals", Exit::Failed, "signals of the system cannot be heard");
        return output::conclude(false, Err(failure));
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    ExitCode::SUCCESS
}
