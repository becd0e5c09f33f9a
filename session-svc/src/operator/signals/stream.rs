//! A stream as the tool shows it.

use chassis::findings::chain;
use oidc::{DefaultSubjects, StreamConfiguration, StreamDelivery, ToldStatus, TransmitterError};
use serde_json::{Value, json};
use session_proto::timestamp::from_ms;

use crate::operator::table;
use crate::receiver::stream_record::StreamRecord;
use crate::receiver::{Delivery, ReadyTransmitter};

/// What its transmitter says of a stream.
pub(super) struct ToldStream {
    pub(super) configuration: Result<StreamConfiguration, TransmitterError>,
    pub(super) status: Result<ToldStatus, TransmitterError>,
    /// Whom its streams are about, where it says so.
    pub(super) default_subjects: Option<DefaultSubjects>,
}

/// Whom streams are about of which nobody says it.
fn subjects(told: &ToldStream) -> &'static str {
    match told.default_subjects {
        Some(DefaultSubjects::All) => "all",
        Some(DefaultSubjects::None) => "none, until they are added at the transmitter",
        None => "not told",
    }
}

/// The columns of a list.
pub(super) const HEAD: [&str; 8] = [
    "TRANSMITTER",
    "ISSUER",
    "DELIVERY",
    "STREAM",
    "STATUS",
    "THERE",
    "VERIFIED",
    "LAST EVENT",
];

/// A line of a list.
pub(super) fn row(
    transmitter: &ReadyTransmitter,
    record: Option<&StreamRecord>,
    there: Option<&Result<ToldStatus, TransmitterError>>,
) -> Vec<String> {
    let time = |at_ms: Option<u64>| at_ms.map_or_else(|| "never".to_owned(), to_the_second);
    let of = |say: &dyn Fn(&StreamRecord) -> String| record.map_or_else(|| "-".to_owned(), say);
    vec![
        transmitter.id.clone(),
        transmitter.issuer().to_owned(),
        delivery(transmitter).to_owned(),
        of(&|record| {
            if record.issuer == transmitter.issuer() {
                record.stream_id.clone()
            } else {
                format!("{} of {}", record.stream_id, record.issuer)
            }
        }),
        of(&|record| record.status.name().to_owned()),
        there.map_or_else(|| "-".to_owned(), |there| word(there).to_owned()),
        of(&|record| time(record.verified_at_ms)),
        of(&|record| time(record.last_event_at_ms)),
    ]
}

/// A stream for programs.
pub(super) fn summary(
    transmitter: &ReadyTransmitter,
    record: Option<&StreamRecord>,
    there: Option<&Result<ToldStatus, TransmitterError>>,
) -> Value {
    let at = |at_ms: Option<u64>| at_ms.map(|at_ms| from_ms(at_ms).to_string());
    json!({
        "transmitter": transmitter.id,
        "issuer": transmitter.issuer(),
        "delivery": delivery(transmitter),
        "stream_id": record.map(|record| &record.stream_id),
        "stream_issuer": record.map(|record| &record.issuer),
        "audience": record.map(|record| &record.audience),
        "poll_url": record.and_then(|record| record.poll_url.as_ref()).map(|url| url.as_str()),
        "status": record.map(|record| record.status.name()),
        "pending_verifications": record.map(|record| record.pending().count()),
        "verified_at": record.and_then(|record| at(record.verified_at_ms)),
        "last_event_at": record.and_then(|record| at(record.last_event_at_ms)),
        "there": there.map(|there| match there {
            Ok(told) => json!({ "status": told.status.name(), "reason": told.reason }),
            Err(error) => json!({ "error": { "reason": error.reason(), "message": chain(error) } }),
        }),
    })
}

/// All about a stream for programs.
pub(super) fn whole(transmitter: &ReadyTransmitter, record: &StreamRecord, told: &ToldStream) -> Value {
    let mut whole = summary(transmitter, Some(record), Some(&told.status));
    whole["default_subjects"] = json!(told.default_subjects.map(|told| match told {
        DefaultSubjects::All => "ALL",
        DefaultSubjects::None => "NONE",
    }));
    whole["configuration"] = match &told.configuration {
        Ok(there) => configuration(there),
        Err(error) => json!({ "error": { "reason": error.reason(), "message": chain(error) } }),
    };
    whole
}

/// All about a stream, a line each.
pub(super) fn lines(transmitter: &ReadyTransmitter, record: &StreamRecord, told: &ToldStream) -> String {
    let time = |at_ms: Option<u64>| at_ms.map_or_else(|| "never".to_owned(), to_the_second);
    let status = match &told.status {
        Ok(ToldStatus {
            status,
            reason: Some(reason),
        }) => format!("{} ({reason})", status.name()),
        Ok(told) => told.status.name().to_owned(),
        Err(error) => chain(error),
    };
    let mut facts = vec![
        ("transmitter", transmitter.id.clone()),
        ("issuer", record.issuer.clone()),
        ("stream", record.stream_id.clone()),
        ("audience", record.audience.join(" ")),
        ("delivery", delivery(transmitter).to_owned()),
        ("status here", record.status.name().to_owned()),
        ("status there", status),
        ("verified", time(record.verified_at_ms)),
        ("verifications pending", record.pending().count().to_string()),
        ("last event", time(record.last_event_at_ms)),
    ];
    match &told.configuration {
        Ok(there) => {
            let secs = |secs: Option<u64>| secs.map(|secs| format!("{secs} s")).unwrap_or_default();
            facts.push(("address", address(&there.delivery).unwrap_or_default().to_owned()));
            facts.push(("events delivered", there.events_delivered.join(" ")));
            facts.push((
                "verified at most every",
                secs(there.min_verification_interval_secs),
            ));
            facts.push(("inactive after", secs(there.inactivity_timeout_secs)));
            facts.push(("description", there.description.clone().unwrap_or_default()));
        }
        Err(error) => facts.push(("configuration", chain(error))),
    }
    facts.push(("subjects by default", subjects(told).to_owned()));
    table::facts(&facts)
}

/// What is asked for, in a word.
pub(super) fn delivery(transmitter: &ReadyTransmitter) -> &'static str {
    match transmitter.delivery {
        Delivery::Push { .. } => "push",
        Delivery::Poll => "poll",
    }
}

/// The status at the transmitter, or what keeps it from being known.
fn word(there: &Result<ToldStatus, TransmitterError>) -> &'static str {
    match there {
        Ok(told) => told.status.name(),
        Err(error) => error.reason(),
    }
}

fn configuration(there: &StreamConfiguration) -> Value {
    json!({
        "audience": there.audience,
        "delivery": there.delivery.to_string(),
        "endpoint_url": address(&there.delivery),
        "events_requested": there.events_requested,
        "events_delivered": there.events_delivered,
        "min_verification_interval": there.min_verification_interval_secs,
        "inactivity_timeout": there.inactivity_timeout_secs,
        "description": there.description,
    })
}

fn address(delivery: &StreamDelivery) -> Option<&str> {
    match delivery {
        StreamDelivery::Push { endpoint_url } | StreamDelivery::Poll { endpoint_url } => {
            Some(endpoint_url.as_str())
        }
        StreamDelivery::Other => None,
    }
}

/// RFC 3339 to the second, for people.
fn to_the_second(at_ms: u64) -> String {
    from_ms(at_ms / 1_000 * 1_000).to_string()
}
