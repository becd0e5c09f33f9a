//! Log records: one line each, JSON for machines, plain for a terminal.
//!
//! Field values are escaped by the formatter, so nothing a client sends begins a record of its own.

use std::io::IsTerminal as _;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

use crate::settings::Reader;
use crate::traces::Traces;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object on each line.
    Json,
    /// For people.
    Pretty,
}

/// The log settings.
#[derive(Debug)]
pub struct LogSettings {
    /// How records are written.
    pub format: Format,
    /// Which are written, as `EnvFilter` reads it.
    pub filter: String,
}

impl LogSettings {
    /// Reads `LOG_FORMAT` and `RUST_LOG`.
    pub fn read(reader: &mut Reader<'_>) -> Self {
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

/// Starts writing records to standard output, and spans to `traces` if there are any. Later calls change nothing.
pub fn init(settings: &LogSettings, traces: Option<&Traces>) {
    let filter = EnvFilter::try_new(&settings.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let records = match settings.format {
        Format::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
        Format::Pretty => fmt::layer().with_target(false).compact().boxed(),
    };
    let spans = traces.map(Traces::layer);
    // Fails only when a subscriber is there already, as in a test that starts two services.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(records)
        .with(spans)
        .try_init();
}
