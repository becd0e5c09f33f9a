//! Traces over OTLP, when `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector.
//!
//! A task of its own sends spans in batches: a slow or missing collector costs spans, never a request.
//!
//! Every span has the target [`TARGET`]; spans of outgoing calls have the level TRACE. Without a collector
//! they are not created; with one they are, regardless of `RUST_LOG`.

mod collector;

use opentelemetry::global;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing_opentelemetry::OpenTelemetryLayer;

pub(crate) use self::collector::CollectorSettings;

/// The target of spans, for filters.
pub const TARGET: &str = "otel::tracing";

/// Whether spans are recorded. If not, callers can skip work for their attributes.
#[must_use]
pub fn are_recorded() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::TRACE)
}

/// Sends spans until shutdown.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    service: &'static str,
}

impl Traces {
    /// Starts sending spans of `service` to the collector. If that fails, returns `None` with a warning on
    /// standard error. Needs a tokio runtime.
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
        // Our source lines and threads are of no use to operators.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(self.service))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
    }

    /// Sends the remaining spans; the exporter's own timeout bounds the wait.
    pub(crate) fn shutdown(&self) {
        // Lost spans are not an error.
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
