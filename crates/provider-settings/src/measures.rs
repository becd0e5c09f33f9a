//! Metrics: duration and outcome of requests to each provider, and expiry of our certificates for providers.

use chassis::tls::CertificateMetrics;
use oidc::ClientAuth;
use prometheus::{HistogramOpts, HistogramVec, Registry};

use crate::ConfiguredProviders;

/// Bounds of the histogram, in seconds. A fast provider answers in tens of milliseconds. By default, sign-ins wait
/// five seconds and refreshes twenty.
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 15.0, 30.0,
];

/// Adds metrics for requests to these providers, and for our certificates, to the registry. Call it before clients
/// are built from the settings. The labels are bounded by the providers, their endpoints and the outcomes.
///
/// # Errors
/// The registry has these metrics already.
pub fn measure(
    providers: &mut ConfiguredProviders,
    registry: &Registry,
    certificates: &CertificateMetrics,
) -> Result<(), prometheus::Error> {
    let durations = HistogramVec::new(
        HistogramOpts::new(
            "provider_request_duration_seconds",
            "How long requests to a provider took, by its id, endpoint and outcome.",
        )
        .buckets(BUCKETS.to_vec()),
        &["provider", "endpoint", "outcome"],
    )?;
    registry.register(Box::new(durations.clone()))?;
    for provider in &mut providers.all {
        if let ClientAuth::TlsClientAuth { cert_file, .. } = &provider.settings.credentials.auth {
            let shown = certificates.of("provider", &provider.id);
            shown.loaded(Some(cert_file));
            provider.credential_files.shown = Some(shown);
        }
        let (durations, id) = (durations.clone(), provider.id.clone());
        provider.settings.observer = Some(oidc::RequestObserver::new(move |endpoint, outcome, took| {
            let endpoint = if endpoint == oidc::DISCOVERY_DOCUMENT {
                "discovery"
            } else {
                endpoint
            };
            durations
                .with_label_values(&[id.as_str(), endpoint, outcome])
                .observe(took.as_secs_f64());
        }));
    }
    Ok(())
}
