//! Log records: one line each, JSON for machines or plain text for a terminal.
//!
//! JSON escapes field values. Plain text does not, so control characters in it are replaced: no client input
//! can start a record of its own. No request waits for a record to be written (`queue`).

mod json;
mod queue;
mod rate;

use std::io::IsTerminal as _;

use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

pub(crate) use self::queue::{LogQueue, UnwrittenRecords};

use self::json::{Json, Records};
use crate::audit;
use crate::settings::Reader;
use crate::traces::{TARGET, Traces};

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A JSON object on each line.
    Json,
    /// Plain text for people.
    Pretty,
}

/// The log settings.
#[derive(Debug)]
pub(crate) struct LogSettings {
    /// How records are written.
    pub(crate) format: Format,
    /// The filter of records, in the syntax of `EnvFilter`.
    pub(crate) filter: String,
}

impl LogSettings {
    /// Reads `LOG_FORMAT` and `RUST_LOG`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let unset = match std::io::stdout().is_terminal() {
            true => Format::Pretty,
            false => Format::Json,
        };
        let formats = [("json", Format::Json), ("pretty", Format::Pretty), ("", unset)];
        let format = reader.choice("LOG_FORMAT", &formats, unset);
        let filter = reader.text("RUST_LOG");
        if EnvFilter::try_new(&filter).is_err() {
            reader.wrong(
                "RUST_LOG",
                "must be a filter such as info or warn,auth_edge=debug",
            );
        }
        Self { format, filter }
    }
}

/// Starts writing the records of `service` to `queue` and spans to `traces`, if set. Audit records go to
/// `audit`, or to `queue` without one; `drops_audit` drops them. Later calls have no effect.
pub(crate) fn init(
    service: &'static str,
    settings: &LogSettings,
    queue: LogQueue,
    audit: Option<LogQueue>,
    drops_audit: bool,
    traces: Option<&Traces>,
) {
    let mut filter = settings.filter.clone();
    // This comes after the operator's filter and overrides it: RUST_LOG does not filter audit records.
    let level = if drops_audit { "off" } else { "info" };
    filter += &format!(",{}={level}", audit::TARGET);
    if traces.is_some() {
        filter += &format!(",{TARGET}=trace");
    }
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let has_own = audit.is_some();
    let as_json = |records, queue| Json {
        service,
        records,
        queue,
    };
    let audit = audit.map(|queue| as_json(Records::Audit, queue));
    let written = match settings.format {
        Format::Json if has_own => as_json(Records::Logs, queue).boxed(),
        Format::Json => as_json(Records::All, queue).boxed(),
        Format::Pretty => fmt::layer()
            .compact()
            .with_target(false)
            .with_ansi(false)
            .with_writer(queue.with_filter(move |record| !has_own || record.target() != audit::TARGET))
            .boxed(),
    };
    let spans = traces.map(Traces::layer);
    // It fails only if a subscriber exists already, for example in a test that starts two services.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(audit)
        .with(written)
        .with(spans)
        .try_init();
}
