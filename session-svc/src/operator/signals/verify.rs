//! `signals verify`: do events of a transmitter arrive, and are they taken?
//!
//! The event that shows it comes to a running service, which notes in the record that it came.

use std::time::Duration;

use chassis::secret::Secret;
use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::access::{OpenedSignals, SignalsAccess, missing, of_store, of_transmitter};
use super::{line, stream};
use crate::operator::output::{CommandFailure, CommandOutput, Exit};
use crate::receiver::stream_record::{StreamRecord, Unedited, unguessable};
use crate::receiver::{Delivery, ReadyTransmitter};

/// Pause between two looks at the record.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

pub(super) struct VerifyCommand {
    wait: Duration,
}

pub(super) fn command() -> Command {
    Command::new("verify")
        .about("Asks a transmitter for an event that shows that its stream works, and waits until a running service has taken it")
        .arg(
            Arg::new("wait")
                .long("wait")
                .value_name("SECONDS")
                .default_value("30")
                .value_parser(value_parser!(u32).range(0..=3_600))
                .help("How long to wait for the event; 0 only asks for it"),
        )
}

impl VerifyCommand {
    pub(super) fn read(given: &ArgMatches) -> Self {
        let secs = given.get_one::<u32>("wait").copied().unwrap_or_default();
        Self {
            wait: Duration::from_secs(secs.into()),
        }
    }

    /// A file belongs to one process: while it is open here no service takes events.
    pub(super) fn judge(&self, access: &SignalsAccess) -> Result<(), CommandFailure> {
        if !access.is_file() || self.wait.is_zero() {
            return Ok(());
        }
        Err(CommandFailure::new(
            "file_store",
            Exit::Failed,
            "SESSION_STORE is a file, which the service that has to take the event cannot share with this command: give --wait 0 while the \
             service is stopped, start it at once, and see with `signals show`, while it is stopped again, whether the event came",
        ))
    }

    pub(super) async fn run(
        self,
        opened: &OpenedSignals<'_>,
        transmitter: &ReadyTransmitter,
    ) -> Result<CommandOutput, CommandFailure> {
        let id = &transmitter.id;
        let record = opened.needed(transmitter).await?.stream;
        let state =
            unguessable().map_err(|error| CommandFailure::new("runtime", Exit::Failed, error.to_string()))?;
        // Before it is asked for: it may come while the transmitter still answers.
        let now_ms = opened.records().now_ms();
        edited(opened, transmitter, |record| {
            record.await_verification(Secret::new(state.clone()), now_ms);
        })
        .await?;
        let asked = transmitter
            .transmitter
            .request_verification(&record.stream_id, &state, opened.now());
        if let Err(error) = asked.await {
            edited(opened, transmitter, |record| {
                record.verifications.retain(|one| one.state.expose() != &state);
            })
            .await?;
            return Err(of_transmitter(&error));
        }
        if self.wait.is_zero() {
            let text = format!(
                "asked {id:?} for a verification: `session-svc signals show --transmitter {id}` says whether it has come"
            );
            return Ok(answer(transmitter, &record, text, false, Exit::Done));
        }
        let until = Instant::now() + self.wait;
        loop {
            let record = opened.needed(transmitter).await?.stream;
            if !record.pending().any(|one| one.state.expose() == &state) {
                let text = format!("verified: events of {id:?} arrive and are taken");
                return Ok(answer(transmitter, &record, text, true, Exit::Done));
            }
            if Instant::now() >= until {
                return Ok(answer(
                    transmitter,
                    &record,
                    self.unheard(transmitter),
                    false,
                    Exit::Failed,
                ));
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    fn unheard(&self, transmitter: &ReadyTransmitter) -> String {
        let hint = match &transmitter.delivery {
            Delivery::Push { endpoint_url, .. } => format!(
                "does the transmitter reach {}, and does a service with this transmitter in its SESSION_TRANSMITTERS answer the edge there",
                endpoint_url.as_ref().map(ToString::to_string).unwrap_or_default()
            ),
            Delivery::Poll => {
                "does a service with this transmitter in its SESSION_TRANSMITTERS run on this store"
                    .to_owned()
            }
        };
        format!(
            "no verification of {:?} was taken within {} s: {hint}? Its log says what was refused. It may still come: `session-svc signals show` tells",
            transmitter.id,
            self.wait.as_secs()
        )
    }
}

async fn edited(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
    edit: impl FnMut(&mut StreamRecord) + Send,
) -> Result<StreamRecord, CommandFailure> {
    let edited = opened.records().edit(&transmitter.id, edit).await;
    match edited.map_err(|error| of_store(&error))? {
        Ok(record) => Ok(record),
        Err(Unedited::Missing) => Err(missing(transmitter)),
        Err(Unedited::Busy) => Err(CommandFailure::new(
            "busy",
            Exit::Failed,
            "the record of the stream is being written all the time: try again",
        )),
    }
}

fn answer(
    transmitter: &ReadyTransmitter,
    record: &StreamRecord,
    text: String,
    verified: bool,
    exit: Exit,
) -> CommandOutput {
    let mut document = stream::summary(transmitter, Some(record), None);
    document["verified"] = json!(verified);
    document["advice"] = json!(text);
    CommandOutput {
        text: line(&text),
        json: document,
        exit,
    }
}
