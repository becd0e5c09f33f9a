//! `signals pause` and `signals resume`: whether a transmitter sends its events.

use oidc::StreamStatus;
use serde_json::json;

use super::access::{OpenedSignals, missing, of_store, of_transmitter};
use super::{line, stream};
use crate::operator::output::{CommandFailure, CommandOutput, Exit};
use crate::receiver::ReadyTransmitter;
use crate::receiver::stream_record::Unedited;

/// Asks the transmitter for another status, and records the one it says then.
pub(super) async fn set(
    opened: &OpenedSignals<'_>,
    transmitter: &ReadyTransmitter,
    wanted: StreamStatus,
) -> Result<CommandOutput, CommandFailure> {
    let id = &transmitter.id;
    let record = opened.needed(transmitter).await?.stream;
    let told = transmitter
        .transmitter
        .set_stream_status(&record.stream_id, wanted, None, opened.now())
        .await
        .map_err(|error| of_transmitter(&error))?;
    let edited = opened
        .records()
        .edit(id, |record| record.status = told.status)
        .await;
    let record = match edited.map_err(|error| of_store(&error))? {
        Ok(edited) => edited,
        Err(Unedited::Missing) => return Err(missing(transmitter)),
        // What the transmitter says is what counts.
        Err(Unedited::Busy) => record,
    };
    let is_set = told.status == wanted;
    let text = if is_set {
        let what = match wanted {
            StreamStatus::Enabled => "sends its events",
            StreamStatus::Paused => "holds its events, as long and as many as it does",
            StreamStatus::Disabled => "sends no events and holds none",
        };
        format!("{id:?} {what}")
    } else {
        format!(
            "{id:?} was asked for {} and says {}: ask its operator why{}",
            wanted.name(),
            told.status.name(),
            told.reason
                .as_ref()
                .map(|reason| format!(" ({reason})"))
                .unwrap_or_default()
        )
    };
    let mut document = stream::summary(transmitter, Some(&record), Some(&Ok(told)));
    document["advice"] = json!(text);
    Ok(CommandOutput {
        text: line(&text),
        json: document,
        exit: if is_set { Exit::Done } else { Exit::Failed },
    })
}
