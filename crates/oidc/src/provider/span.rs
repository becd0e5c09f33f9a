//! The span of a request to the provider, where traces are recorded (OpenTelemetry semantic conventions, HTTP client).
//!
//! Invariants: it names endpoint, host and outcome; no query, token, code or secret. The trace is not told to the provider. Requests
//! outside of any trace, such as a refresh of its keys ahead of time, begin none.

use tracing::field::Empty;
use tracing::{Level, Span};
use url::Url;

use crate::ProviderError;

const TARGET: &str = "otel::tracing";

pub(crate) fn of_request(endpoint: &'static str, method: &'static str, url: &Url) -> Span {
    if !tracing::enabled!(target: TARGET, Level::TRACE) || Span::current().is_none() {
        return Span::none();
    }
    tracing::trace_span!(
        target: TARGET,
        "provider",
        otel.name = %format_args!("{method} {endpoint}"),
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = method,
        http.response.status_code = Empty,
        server.address = url.host_str(),
        server.port = url.port_or_known_default().map(i64::from),
        url.full = shown(url),
        error.type = Empty,
    )
}

/// An endpoint without what may be private in it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Only an address without a host has no room for a user, and it has none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// Says what status, if any, came.
pub(crate) fn answered(span: &Span, status: Result<u16, &ProviderError>) {
    match status {
        Ok(status) => {
            tracing::record_all!(span, http.response.status_code = i64::from(status));
            if status >= 400 {
                let reason = status.to_string();
                tracing::record_all!(span, error.type = reason, otel.status_code = "ERROR");
            }
        }
        Err(error) => {
            let reason = match error {
                ProviderError::Timeout { .. } => "timeout",
                ProviderError::Unreachable { .. } => "unreachable",
                ProviderError::TooLarge { .. } => "too_large",
                _ => "_OTHER",
            };
            tracing::record_all!(span, error.type = reason, otel.status_code = "ERROR");
        }
    }
}
