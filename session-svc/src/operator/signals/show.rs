//! `signals list` and `signals show`: what is recorded of streams, beside what their transmitters say.

use futures_util::stream::{self as futures, StreamExt as _, TryStreamExt as _};
use serde_json::json;

use super::access::{OpenedSignals, of_store};
use super::stream::{self, ToldStream};
use crate::operator::output::{CommandFailure, CommandOutput, Exit};
use crate::operator::table;
use crate::receiver::ReadyTransmitter;

/// Transmitters that are asked at once.
const AT_ONCE: usize = 8;

/// All transmitters. One that cannot be asked is listed with why.
pub(super) async fn listed(opened: &OpenedSignals<'_>) -> Result<CommandOutput, CommandFailure> {
    let asked = opened.transmitters.iter().map(|transmitter| async move {
        let kept = opened.records().load(&transmitter.id).await;
        let kept = kept.map_err(|error| of_store(&error))?.map(|kept| kept.stream);
        let there = match &kept {
            Some(record) if record.issuer == transmitter.issuer() => {
                let asked = transmitter
                    .transmitter
                    .stream_status(&record.stream_id, opened.now());
                Some(asked.await)
            }
            Some(_) | None => None,
        };
        Ok::<_, CommandFailure>((transmitter, kept, there))
    });
    let all: Vec<_> = futures::iter(asked).buffered(AT_ONCE).try_collect().await?;
    let rows = all
        .iter()
        .map(|(transmitter, kept, there)| stream::row(transmitter, kept.as_ref(), there.as_ref()));
    let documents = all
        .iter()
        .map(|(transmitter, kept, there)| stream::summary(transmitter, kept.as_ref(), there.as_ref()));
    Ok(CommandOutput {
        text: table::columns(&stream::HEAD, &rows.collect::<Vec<_>>()),
        json: json!({ "transmitters": documents.collect::<Vec<_>>() }),
        exit: Exit::Done,
    })
}

/// One stream. A transmitter that cannot be asked, or knows no such stream, is told in place of what it would say.
pub(super) async fn shown(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
) -> Result<CommandOutput, CommandFailure> {
    let record = opened.needed(transmitter).await?.stream;
    let now = opened.now();
    let metadata = transmitter.transmitter.metadata().await;
    let told = ToldStream {
        default_subjects: metadata.ok().and_then(|metadata| metadata.default_subjects),
        configuration: transmitter.transmitter.stream(&record.stream_id, now).await,
        status: transmitter
            .transmitter
            .stream_status(&record.stream_id, now)
            .await,
    };
    let is_known = told.configuration.is_ok() && told.status.is_ok();
    Ok(CommandOutput {
        text: stream::lines(transmitter, &record, &told),
        json: stream::whole(transmitter, &record, &told),
        exit: if is_known { Exit::Done } else { Exit::Failed },
    })
}
