//! What a command says at its end, and with which exit code.
//!
//! Invariant: data of a browser or a provider cannot steer the terminal, with JSON neither.

use std::io::Write as _;
use std::process::ExitCode;

pub(super) use chassis::findings::chain;
use chassis::terminal::{escaped_json, shown};
use chassis::tool;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// The command did its work.
    Done,
    /// Something failed, or is not as it should be.
    Failed,
    /// The command was not understood.
    Usage,
    /// There is no such session.
    NotFound,
}

impl Exit {
    fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
        })
    }
}

/// An answer, for people and for programs.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// Lines for people.
    pub(super) text: String,
    /// The same for programs.
    pub(super) json: Value,
    /// How good it is.
    pub(super) exit: Exit,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct CommandFailure {
    /// For programs: a reason of the session API, or one of the command's own.
    pub(super) reason: String,
    /// For people: what is wrong and what to do.
    pub(super) text: String,
    /// With which code to end.
    pub(super) exit: Exit,
}

impl CommandFailure {
    /// A failure for a reason of ours.
    pub(super) fn new(reason: &str, exit: Exit, text: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            text: text.into(),
            exit,
        }
    }

    /// Used wrongly.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::new("usage", Exit::Usage, text)
    }
}

/// What comes of `work`, or a failure if a signal stops the command before.
pub(super) async fn unless_stopped<T>(
    work: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        return work.await;
    };
    tokio::select! {
        outcome = work => outcome,
        _ = terminate.recv() => Err(stopped()),
        _ = interrupt.recv() => Err(stopped()),
    }
}

fn stopped() -> CommandFailure {
    CommandFailure::new("stopped", Exit::Failed, "stopped before it was done")
}

/// The flag for JSON.
pub(super) fn json_flag() -> Arg {
    Arg::new(tool::JSON)
        .long(tool::JSON)
        .action(ArgAction::SetTrue)
        .help("Answer with one JSON document")
}

/// Whether the flag for JSON is given.
pub(super) fn wants_json(given: &ArgMatches) -> bool {
    given.get_flag(tool::JSON)
}

/// Says how it went. A reader that hung up is no failure of ours.
pub(super) fn conclude(json: bool, outcome: Result<CommandOutput, CommandFailure>) -> ExitCode {
    let (text, exit) = match outcome {
        Ok(answer) if json => (escaped_json(&format!("{:#}\n", answer.json)), answer.exit),
        Ok(answer) => (answer.text, answer.exit),
        Err(failure) => {
            let lines: Vec<String> = failure.text.lines().map(shown).collect();
            let _ = writeln!(std::io::stderr(), "session-svc: {}", lines.join("\n"));
            let document = if json {
                tool::failure_document(&failure.reason, &failure.text)
            } else {
                String::new()
            };
            (document, failure.exit)
        }
    };
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    exit.code()
}
