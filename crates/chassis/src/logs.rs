//! Log records: one line each, JSON for machines, plain for a terminal.
//!
//! JSON escapes field values; the plain format does not, so its control characters are replaced on the way out, and
//! nothing a client sends begins a record of its own. No request waits for a record to be written (`queue`).

mod json;
mod queue;
mod rate;

use std::io::{self, IsTerminal as _, Write};

use tracing::{Metadata, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::fmt::{FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
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
    /// For people.
    Pretty,
}

/// The log settings.
#[derive(Debug)]
pub(crate) struct LogSettings {
    /// How records are written.
    pub(crate) format: Format,
    /// Which are written, as `EnvFilter` reads it.
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

/// Starts writing the records of `service` to standard output by way of `queue`, and spans to `traces` if there are any. Audit records
/// go to the queue `audit` as JSON, or among the others where there is none, unless `drops_audit`. Later calls change nothing.
pub(crate) fn init(
    service: &'static str,
    settings: &LogSettings,
    queue: LogQueue,
    audit: Option<LogQueue>,
    drops_audit: bool,
    traces: Option<&Traces>,
) {
    let mut filter = settings.filter.clone();
    // After the operator's filter, so that it wins: RUST_LOG does not filter audit records.
    let level = if drops_audit { "off" } else { "info" };
    filter += &format!(",{}={level}", audit::TARGET);
    if traces.is_some() {
        filter += &format!(",{TARGET}=trace");
    }
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let has_own = audit.is_some();
    let audit = audit.map(|queue| as_json(service, Records::Audit, queue));
    let written = match settings.format {
        Format::Json if has_own => as_json(service, Records::Logs, queue).boxed(),
        Format::Json => as_json(service, Records::All, queue).boxed(),
        Format::Pretty => fmt::layer()
            .compact()
            .with_target(false)
            .with_ansi(false)
            .with_writer(OneLine(
                queue.with_filter(move |record| !has_own || record.target() != audit::TARGET),
            ))
            .boxed(),
    };
    let spans = traces.map(Traces::layer);
    // Fails only when a subscriber is there already, as in a test that starts two services.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(audit)
        .with(written)
        .with(spans)
        .try_init();
}

/// Writes these records to a queue, as JSON.
fn as_json<S>(
    service: &'static str,
    records: Records,
    queue: LogQueue,
) -> fmt::Layer<S, Unwritten, Json, LogQueue>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fmt::Layer::default()
        .event_format(Json { service, records })
        .fmt_fields(Unwritten)
        .with_writer(queue)
}

/// Writes nothing of spans: a JSON record holds none, and writing their fields down would cost more than the record.
struct Unwritten;

impl<'writer> FormatFields<'writer> for Unwritten {
    fn format_fields<R: RecordFields>(&self, _: fmt::format::Writer<'writer>, _: R) -> std::fmt::Result {
        Ok(())
    }
}

/// Writes each record, which arrives in one piece, as one line.
struct OneLine<W>(W);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLine<M> {
    type Writer = OneLine<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        OneLine(self.0.make_writer())
    }

    fn make_writer_for(&'a self, record: &Metadata<'_>) -> Self::Writer {
        OneLine(self.0.make_writer_for(record))
    }
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let content = record.strip_suffix(b"\n").unwrap_or(record);
        let mut line: Vec<u8> = content
            .iter()
            .map(|b| if b.is_ascii_control() { b' ' } else { *b })
            .collect();
        line.push(b'\n');
        self.0.write_all(&line)?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_end_or_escape_sequence_in_a_value_does_not_leave_its_record() {
        let mut written = Vec::new();
        let record = b"INFO denied error=x\nINFO signed in\x1b[2J\r\n";
        assert_eq!(OneLine(&mut written).write(record).unwrap(), record.len());
        assert_eq!(written, b"INFO denied error=x INFO signed in [2J \n");
    }
}
