//! `signals delete`: a stream at its transmitter, and its record.

use clap::{Arg, ArgAction, ArgMatches, Command};
use oidc::TransmitterError;
use serde_json::json;

use super::access::{OpenedSignals, missing, of_store, of_transmitter};
use super::line;
use crate::operator::output::{CommandFailure, CommandOutput, Exit};
use crate::receiver::ReadyTransmitter;

pub(super) struct DeleteCommand {
    stream: Option<String>,
    here_only: bool,
}

pub(super) fn command() -> Command {
    Command::new("delete")
        .about("Deletes the stream of a transmitter, and its record")
        .arg(
            Arg::new("stream")
                .long("stream")
                .value_name("STREAM")
                .conflicts_with("here-only")
                .help("A stream at the transmitter that is not recorded here, by its id there"),
        )
        .arg(
            Arg::new("here-only")
                .long("here-only")
                .action(ArgAction::SetTrue)
                .help(
                    "Forgets the record and leaves the transmitter alone, such as one that is gone for good",
                ),
        )
}

impl DeleteCommand {
    pub(super) fn read(given: &ArgMatches) -> Self {
        Self {
            stream: given.get_one::<String>("stream").cloned(),
            here_only: given.get_flag("here-only"),
        }
    }

    pub(super) async fn run(
        self,
        opened: &OpenedSignals<'_>,
        transmitter: &ReadyTransmitter,
    ) -> Result<CommandOutput, CommandFailure> {
        let id = &transmitter.id;
        if self.here_only {
            return match forgotten(opened, transmitter).await? {
                true => Ok(deleted(
                    transmitter,
                    None,
                    false,
                    format!("the record of {id:?} is gone; its transmitter was not asked"),
                )),
                false => Err(missing(transmitter)),
            };
        }
        let recorded = opened.kept(transmitter).await?.map(|kept| kept.stream.stream_id);
        let Some(stream) = self.stream.or_else(|| recorded.clone()) else {
            return Err(missing(transmitter));
        };
        let outcome = transmitter.transmitter.delete_stream(&stream, opened.now()).await;
        let is_recorded = recorded.as_ref() == Some(&stream);
        let was_there = match outcome {
            Ok(()) => true,
            Err(TransmitterError::NoSuchStream) if is_recorded => false,
            Err(error) => {
                let mut failure = of_transmitter(&error);
                failure.text.push_str(
                    ". Nothing was deleted; --here-only forgets the record of a transmitter that is gone for good",
                );
                return Err(failure);
            }
        };
        if is_recorded {
            forgotten(opened, transmitter).await?;
        }
        let text = match (was_there, is_recorded) {
            (true, true) => format!("the stream {stream} of {id:?} is deleted, there and here"),
            (true, false) => format!("the stream {stream} is deleted at {id:?}; it was not recorded here"),
            (false, _) => format!("{id:?} knows no stream {stream} any more; its record is gone"),
        };
        Ok(deleted(transmitter, Some(stream), was_there, text))
    }
}

async fn forgotten(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
) -> Result<bool, CommandFailure> {
    let removed = opened.records().remove(&transmitter.id).await;
    removed.map_err(|error| of_store(&error))
}

fn deleted(
    transmitter: &ReadyTransmitter,
    stream: Option<String>,
    was_there: bool,
    text: String,
) -> CommandOutput {
    CommandOutput {
        json: json!({
            "transmitter": transmitter.id, "stream_id": stream, "deleted_there": was_there, "advice": text,
        }),
        text: line(&text),
        exit: Exit::Done,
    }
}
