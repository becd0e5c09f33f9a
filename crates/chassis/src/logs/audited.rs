//! Keeps audit records apart from log records: their fields go to the audit log, which makes lines of them.
//!
//! What is not of the audit target costs a comparison more.

use std::fmt;
use std::io::{self, Write};

use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::json;
use crate::audit;
use crate::audit_log::AuditLog;

/// What formats or writes log records, with the audit log beside it.
pub(super) struct Audited<T, A> {
    others: T,
    audit: A,
}

impl<F> Audited<F, bool> {
    /// Formats audit records for the audit log, if there is one, and all others as `others` does.
    pub(super) fn format(others: F, is_chained: bool) -> Self {
        Self {
            others,
            audit: is_chained,
        }
    }
}

impl<W> Audited<W, Option<AuditLog>> {
    /// Gives audit records to the audit log, if there is one, and all others to `others`.
    pub(super) fn writer(others: W, audit: Option<AuditLog>) -> Self {
        Self { others, audit }
    }
}

fn is_audit(metadata: &Metadata<'_>) -> bool {
    metadata.target() == audit::TARGET
}

impl<S, N, F> FormatEvent<S, N> for Audited<F, bool>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match self.audit && is_audit(event.metadata()) {
            true => json::audit_fields(writer, event),
            false => self.others.format_event(context, writer, event),
        }
    }
}

/// Takes one record.
pub(super) enum RecordWriter<'a, W> {
    /// An audit record.
    Audit(&'a AuditLog),
    /// Another one.
    Other(W),
}

impl<W: Write> Write for RecordWriter<'_, W> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        match self {
            Self::Audit(log) => {
                log.add(record);
                Ok(record.len())
            }
            Self::Other(writer) => writer.write(record),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Audit(_) => Ok(()),
            Self::Other(writer) => writer.flush(),
        }
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Audited<M, Option<AuditLog>> {
    type Writer = RecordWriter<'a, M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        RecordWriter::Other(self.others.make_writer())
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        match &self.audit {
            Some(log) if is_audit(metadata) => RecordWriter::Audit(log),
            _ => RecordWriter::Other(self.others.make_writer_for(metadata)),
        }
    }
}
