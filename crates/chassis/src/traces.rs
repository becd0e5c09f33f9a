//! Traces over OTLP, when `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector.
//!
//! Spans are sent in batches from a task of their own: a collector that is slow or gone costs spans, never a request.
//!
//! Every span has the target [`TARGET`], those of calls to others the level TRACE: without a collector nobody makes them, with one
//! they are made whatever `RUST_LOG` says.

mod collector;

use opentelemetry::global;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing_opentelemetry::OpenTelemetryLayer;

pub(crate) use self::collector::CollectorSettings;

/// The target of spans, by which a filter of records tells them apart.
pub const TARGET: &str = "otel::tracing";

/// Whether spans are recorded: without, none is described.
#[must_use]
pub fn are_recorded() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::TRACE)
}

/// Sends spans until it is shut down.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    service: &'static str,
}

impl Traces {
    /// Starts sending spans of `service` to the collector; `None` and a warning on standard error if it cannot be used after all.
    /// Needs a tokio runtime.
    #[must_use]
    pub(crate) fn start(service: &'static str, collector: &CollectorSettings) -> Option<Self> {
        let exporter = match exporter(collector) {
            Ok(exporter) => exporter,
            Err(error) => {
                eprintln!("{}: no traces are sent: {error}", collector::ENDPOINT);
                return None;
            }
        };
        let resource = Resource::builder().with_service_name(service).build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(exporter)
            .build();
        global::set_text_map_propagator(TraceContextPropagator::new());
        Some(Self { provider, service })
    }

    /// The layer that turns spans into exported ones.
    pub(crate) fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
    {
        // Which line and thread of ours made a span says nothing to who reads it.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(self.service))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
    }

    /// Sends what is left; waits for the collector for a bounded time (the exporter's own timeout).
    pub(crate) fn shutdown(&self) {
        // Nothing can be done about spans nobody takes.
        let _ = self.provider.shutdown();
    }
}

fn exporter(collector: &CollectorSettings) -> Result<SpanExporter, Box<dyn std::error::Error>> {
    let builder = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(&*collector.endpoint);
    let builder = match &collector.tls {
        Some(tls) => builder.with_tls_config(tls.config()?),
        None => builder,
    };
    Ok(builder.build()?)
}
