//! Metrics of upstream durations, by route.

use std::time::Instant;

use prometheus::{HistogramOpts, HistogramVec, Registry};

use super::clients::UpstreamResponse;
use crate::http::errors::HttpError;

/// The time until the head of an upstream's answer.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamDurations(HistogramVec);

impl UpstreamDurations {
    /// Creates and registers the metric.
    ///
    /// # Errors
    /// The metric is already registered.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "upstream_request_duration_seconds",
                "Time until an upstream's answer begins, including retries, by route and outcome.",
            ),
            &["http_route", "outcome"],
        )?;
        registry.register(Box::new(durations.clone()))?;
        Ok(Self(durations))
    }

    /// Records an exchange of a configured route that began at `began`.
    pub(super) fn observe(&self, route: &str, began: Instant, answer: &Result<UpstreamResponse, HttpError>) {
        let outcome = match answer {
            Ok(answer) => match answer.status().as_u16() {
                500.. => "5xx",
                400..500 => "4xx",
                300..400 => "3xx",
                200..300 => "2xx",
                _ => "1xx",
            },
            Err(HttpError::UpstreamSlow) => "timeout",
            Err(HttpError::UpstreamDown) => "unreachable",
            // The body is late or too large, or the session ended meanwhile.
            Err(_) => "given_up",
        };
        self.0
            .with_label_values(&[route, outcome])
            .observe(began.elapsed().as_secs_f64());
    }
}
