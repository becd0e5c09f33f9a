//! Log records: one line each, JSON for machines, plain for a terminal.
//!
//! JSON escapes field values; the plain format does not, so its control characters are replaced on the way out, and
//! nothing a client sends begins a record of its own. No request waits for a record to be written (`queue`).

mod json;
mod queue;
mod rate;

use std::io::{self, IsTerminal as _, Write};

use tracing::Metadata;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::fmt::{FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

pub(crate) use self::queue::{LogQueue, UnwrittenRecords};

use self::json::Json;
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
        let format = match reader.text("LOG_FORMAT").as_str() {
            "json" => Format::Json,
            "pretty" => Format::Pretty,
            "" if std::io::stdout().is_terminal() => Format::Pretty,
            "" => Format::Json,
            _ => {
                reader.wrong("LOG_FORMAT", "must be json or pretty");
                Format::Json
            }
        };
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

/// Where audit records go.
pub(crate) enum AuditRecords {
    /// Nowhere.
    Dropped,
    /// Among the log records, in their format.
    AmongLogs,
    /// To a queue of their own, as JSON.
    Own(LogQueue),
}

/// Starts writing the records of `service` to standard output by way of `queue`, audit records as `records` says, and spans to `traces`
/// if there are any. Later calls change nothing.
pub(crate) fn init(
    service: &'static str,
    settings: &LogSettings,
    queue: LogQueue,
    records: AuditRecords,
    traces: Option<&Traces>,
) {
    let mut filter = settings.filter.clone();
    // After the operator's filter, so that it wins: RUST_LOG does not filter audit records.
    let level = match records {
        AuditRecords::Dropped => "off",
        AuditRecords::AmongLogs | AuditRecords::Own(_) => "info",
    };
    filter += &format!(",{}={level}", audit::TARGET);
    if traces.is_some() {
        filter += &format!(",{TARGET}=trace");
    }
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let json = Json { service };
    let own = match records {
        AuditRecords::Own(queue) => Some(queue),
        AuditRecords::Dropped | AuditRecords::AmongLogs => None,
    };
    let has_own = own.is_some();
    let audit = own.map(|queue| {
        fmt::layer()
            .event_format(json)
            .fmt_fields(Unwritten)
            .with_writer(queue.with_filter(is_audit))
    });
    let queue = queue.with_filter(move |record| !(has_own && is_audit(record)));
    let written = match settings.format {
        Format::Json => fmt::layer()
            .event_format(json)
            .fmt_fields(Unwritten)
            .with_writer(queue)
            .boxed(),
        Format::Pretty => fmt::layer()
            .compact()
            .with_target(false)
            .with_ansi(false)
            .with_writer(OneLine(queue))
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

/// Writes nothing of spans: a JSON record holds none, and writing their fields down would cost more than the record.
struct Unwritten;

impl<'writer> FormatFields<'writer> for Unwritten {
    fn format_fields<R: RecordFields>(&self, _: fmt::format::Writer<'writer>, _: R) -> std::fmt::Result {
        Ok(())
    }
}

fn is_audit(record: &Metadata<'_>) -> bool {
    record.target() == audit::TARGET
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
