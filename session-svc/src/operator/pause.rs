//! `pause`: waits until it is stopped, so that a container with this image keeps running for `kubectl exec`.

use std::process::ExitCode;

use chassis::settings::{Reader, SettingNotice, SettingsError};
use chassis::tool::{Tool, Work};
use clap::{ArgMatches, Command};
use tokio::signal::unix::{SignalKind, signal};

/// The command.
pub(super) struct PauseTool;

impl Tool for PauseTool {
    fn command(&self) -> Command {
        Command::new("pause")
            .about("Waits for a signal, and keeps a container running in which an operator runs the other commands")
            .after_help(
                "Reads no settings and opens no connection or file. SIGTERM and SIGINT stop it. Exit codes: 0 stopped, 1 cannot receive signals, 2 wrong usage.",
            )
    }

    fn prepare(
        &self,
        _given: &ArgMatches,
        reader: Reader<'_>,
    ) -> Result<(Work, Vec<SettingNotice>), SettingsError> {
        let ((), warnings) = reader.finish(())?;
        Ok((Box::pin(wait_for_signal()), warnings))
    }
}

async fn wait_for_signal() -> ExitCode {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        return ExitCode::FAILURE;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    ExitCode::SUCCESS
}
