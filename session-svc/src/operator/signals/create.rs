//! `signals create`: a stream at its transmitter, with its record in the store.

use chassis::secret::Secret;
use clap::{Arg, ArgAction, ArgMatches, Command};
use oidc::{
    ClientSecret, NewStream, StreamConfiguration, StreamDelivery, StreamStatus, TransmitterError,
    WantedDelivery,
};
use serde_json::json;

use super::access::{OpenedSignals, of_store, of_transmitter};
use super::{line, stream};
use crate::keeper::KeeperError;
use crate::operator::output::{CommandFailure, CommandOutput, Exit, chain};
use crate::operator::table;
use crate::receiver::stream_record::{StreamRecord, unguessable};
use crate::receiver::{Delivery, ReadyTransmitter};

/// What `create` may do where a stream is there already.
#[derive(Clone, Copy)]
pub(super) struct CreateCommand {
    adopts: bool,
}

pub(super) fn command() -> Command {
    Command::new("create")
        .about("Creates the stream of a transmitter, and records it")
        .arg(
            Arg::new("adopt")
                .long("adopt")
                .action(ArgAction::SetTrue)
                .help("Records the stream that the transmitter has of us already, instead of creating one, if it is delivered as the table says"),
        )
}

impl CreateCommand {
    pub(super) fn read(given: &ArgMatches) -> Self {
        Self {
            adopts: given.get_flag("adopt"),
        }
    }

    pub(super) async fn run(
        self,
        opened: &OpenedSignals<'_>,
        transmitter: &ReadyTransmitter,
    ) -> Result<CommandOutput, CommandFailure> {
        if self.adopts {
            adopted(opened, transmitter).await
        } else {
            created(opened, transmitter).await
        }
    }
}

/// Records the only stream there is that is delivered as configured.
async fn adopted(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
) -> Result<CommandOutput, CommandFailure> {
    refuse_recorded(opened, transmitter).await?;
    let (id, now) = (&transmitter.id, opened.now());
    let streams = transmitter.transmitter.streams(now).await;
    let streams = streams.map_err(|error| of_transmitter(&error))?;
    let fits = |stream: &&StreamConfiguration| match (&stream.delivery, &transmitter.delivery) {
        (StreamDelivery::Poll { .. }, Delivery::Poll) => true,
        (
            StreamDelivery::Push { endpoint_url },
            Delivery::Push {
                endpoint_url: ours, ..
            },
        ) => ours.as_ref() == Some(endpoint_url),
        _ => false,
    };
    let mut fitting = streams.iter().filter(fits);
    let (Some(stream), None) = (fitting.next(), fitting.next()) else {
        return Err(CommandFailure::new(
            "nothing_to_adopt",
            Exit::Failed,
            format!(
                "{id:?} has {} streams of ours, and not one alone that is delivered as its table says: create one with `session-svc signals create --transmitter {id}`",
                streams.len()
            ),
        ));
    };
    let record = record_of(transmitter, stream, None);
    match opened.records().insert(id, &record).await {
        Ok(true) => Ok(answer(transmitter, &record, stream)),
        Ok(false) => Err(recorded(transmitter, &record.stream_id)),
        Err(error) => Err(of_store(&error)),
    }
}

async fn created(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
) -> Result<CommandOutput, CommandFailure> {
    let id = &transmitter.id;
    refuse_recorded(opened, transmitter).await?;
    let made = made_authorization(transmitter)?;
    let delivery = wanted(transmitter, made.as_ref())?;
    let description = format!("Vestibule, transmitter {id}");
    let wanted = NewStream {
        audience: Some(&transmitter.audience)
            .filter(|audience| !audience.is_empty())
            .map(Vec::as_slice),
        events_requested: &transmitter.events,
        delivery: &delivery,
        description: Some(&description),
    };
    let created = transmitter.transmitter.create_stream(&wanted, opened.now()).await;
    let created = match created {
        Ok(created) => created,
        Err(TransmitterError::StreamExists) => return Err(exists(opened, transmitter).await),
        Err(error) => return Err(of_transmitter(&error)),
    };
    let record = record_of(transmitter, &created, made);
    match opened.records().insert(id, &record).await {
        Ok(true) => Ok(answer(transmitter, &record, &created)),
        unrecorded => Err(undone(opened, transmitter, &record, unrecorded.err()).await),
    }
}

async fn refuse_recorded(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
) -> Result<(), CommandFailure> {
    match opened.kept(transmitter).await? {
        Some(kept) => Err(recorded(transmitter, &kept.stream.stream_id)),
        None => Ok(()),
    }
}

fn recorded(transmitter: &ReadyTransmitter, stream_id: &str) -> CommandFailure {
    let id = &transmitter.id;
    CommandFailure::new(
        "stream_recorded",
        Exit::Failed,
        format!(
            "{id:?} has the stream {stream_id} already: `session-svc signals show --transmitter {id}` says how it stands; to create \
             another one, delete it first with `session-svc signals delete --transmitter {id}`"
        ),
    )
}

fn record_of(
    transmitter: &ReadyTransmitter,
    stream: &StreamConfiguration,
    push_authorization: Option<Secret<String>>,
) -> StreamRecord {
    StreamRecord {
        issuer: transmitter.issuer().to_owned(),
        stream_id: stream.stream_id.clone(),
        audience: stream.audience.clone(),
        poll_url: match &stream.delivery {
            StreamDelivery::Poll { endpoint_url } => Some(endpoint_url.clone()),
            StreamDelivery::Push { .. } | StreamDelivery::Other => None,
        },
        push_authorization,
        status: StreamStatus::Enabled,
        verifications: Vec::new(),
        verified_at_ms: None,
        last_event_at_ms: None,
    }
}

/// What pushes come with where no file says it: something that nobody else knows.
fn made_authorization(transmitter: &ReadyTransmitter) -> Result<Option<Secret<String>>, CommandFailure> {
    match &transmitter.delivery {
        Delivery::Poll
        | Delivery::Push {
            authorization: Some(_),
            ..
        } => Ok(None),
        Delivery::Push {
            authorization: None, ..
        } => {
            let token = unguessable();
            let token =
                token.map_err(|error| CommandFailure::new("runtime", Exit::Failed, error.to_string()))?;
            Ok(Some(Secret::new(format!("Bearer {token}"))))
        }
    }
}

fn wanted(
    transmitter: &ReadyTransmitter,
    made: Option<&Secret<String>>,
) -> Result<WantedDelivery, CommandFailure> {
    match &transmitter.delivery {
        Delivery::Poll => Ok(WantedDelivery::Poll),
        Delivery::Push {
            endpoint_url: Some(url),
            authorization,
        } => Ok(WantedDelivery::Push {
            endpoint_url: url.clone(),
            authorization_header: authorization
                .as_ref()
                .or(made)
                .map(|header| ClientSecret::new(header.expose().clone())),
        }),
        Delivery::Push {
            endpoint_url: None, ..
        } => Err(CommandFailure::new(
            "no_push_url",
            Exit::Failed,
            format!(
                "where should {:?} push its events? Give its table push_url = \"https://HOST/api/auth/events\", with the host of an edge",
                transmitter.id
            ),
        )),
    }
}

/// The transmitter has a stream of this receiver, which is not recorded.
async fn exists(opened: &OpenedSignals<'_>, transmitter: &ReadyTransmitter) -> CommandFailure {
    let mut failure = of_transmitter(&TransmitterError::StreamExists);
    let streams = transmitter
        .transmitter
        .streams(opened.now())
        .await
        .unwrap_or_default();
    let ids: Vec<&str> = streams.iter().map(|stream| stream.stream_id.as_str()).collect();
    let which = if ids.is_empty() {
        String::new()
    } else {
        format!(": {}", ids.join(", "))
    };
    failure.text = format!(
        "{}{which}. One that is delivered as the table says is recorded with --adopt; one that nobody receives by is deleted with `session-svc signals delete --transmitter {} --stream STREAM`",
        failure.text, transmitter.id
    );
    failure
}

/// A stream that could not be recorded is deleted again, and so is a record that was written after all.
async fn undone(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
    record: &StreamRecord,
    error: Option<KeeperError>,
) -> CommandFailure {
    let (id, stream_id) = (&transmitter.id, &record.stream_id);
    let mut failure = match &error {
        Some(error) => of_store(error),
        None => CommandFailure::new(
            "stream_recorded",
            Exit::Failed,
            format!("somebody else has created a stream of {id:?} at the same moment"),
        ),
    };
    let records = opened.records();
    if error.is_some()
        && let Ok(Some(kept)) = records.load(id).await
        && kept.stream.stream_id == *stream_id
    {
        // One that stays is deleted by `signals delete`, whose transmitter knows no such stream.
        let _ = records.remove(id).await;
    }
    let deleted = transmitter
        .transmitter
        .delete_stream(stream_id, opened.now())
        .await;
    let then = match deleted {
        Ok(()) | Err(TransmitterError::NoSuchStream) => {
            format!("the stream {stream_id} could not be recorded and was deleted again: nothing is created")
        }
        Err(error) => format!(
            "the stream {stream_id} could not be recorded, and is left at the transmitter ({}): delete it there with `session-svc \
             signals delete --transmitter {id} --stream {stream_id}`",
            chain(&error)
        ),
    };
    failure.text = format!("{then}. {}", failure.text);
    failure
}

fn answer(
    transmitter: &ReadyTransmitter,
    record: &StreamRecord,
    created: &StreamConfiguration,
) -> CommandOutput {
    let id = &transmitter.id;
    let is_delivered = |event: &&String| created.events_delivered.contains(event);
    let missing: Vec<&String> = transmitter
        .events
        .iter()
        .filter(|event| !is_delivered(event))
        .collect();
    let facts = table::facts(&[
        ("transmitter", id.clone()),
        ("stream", record.stream_id.clone()),
        ("audience", record.audience.join(" ")),
        ("delivery", created.delivery.to_string()),
        ("events delivered", created.events_delivered.join(" ")),
    ]);
    let advice =
        format!("created; `session-svc signals verify --transmitter {id}` shows whether events arrive");
    let mut document = stream::summary(transmitter, Some(record), None);
    document["events_delivered"] = json!(created.events_delivered);
    document["events_not_delivered"] = json!(missing);
    document["advice"] = json!(advice);
    CommandOutput {
        text: format!("{facts}{}", line(&advice)),
        json: document,
        exit: Exit::Done,
    }
}
