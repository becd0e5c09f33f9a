//! How long upstreams take, by route.

use std::time::Instant;

use prometheus::{HistogramOpts, HistogramVec, Registry};

use super::clients::UpstreamResponse;
use crate::http::errors::HttpError;

/// How long upstreams take until an answer's head.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamDurations(HistogramVec);

impl UpstreamDurations {
    /// Makes the metric and registers it.
    ///
    /// # Errors
    /// It is registered already.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "upstream_request_duration_seconds",
                "Time until an upstream's answer began, repetitions included, by route and outcome.",
            ),
            &["http_route", "outcome"],
        )?;
        registry.register(Box::new(durations.clone()))?;
        Ok(Self(durations))
    }

    /// Counts an exchange of a route of the table that began then.
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
            // A body that did not come, or is too large; a session that ended meanwhile.
            Err(_) => "given_up",
        };
        self.0
            .with_label_values(&[route, outcome])
            .observe(began.elapsed().as_secs_f64());
    }
}
