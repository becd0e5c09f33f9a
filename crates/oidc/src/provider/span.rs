//! The span of a request to the provider (OpenTelemetry semantic conventions, HTTP client).
//!
//! Invariants: it has endpoint, host and outcome, but no query, token, code or secret. The provider does not
//! receive the trace. Requests outside of a trace, such as early key refreshes, start none.

use reqwest::Request;
use tracing::field::Empty;
use tracing::{Level, Span};
use url::{Position, Url};

use crate::ProviderError;
use crate::provider::http_client::outcome;

const TARGET: &str = "otel::tracing";

pub(crate) fn of_request(endpoint: &'static str, request: &Request) -> Span {
    if !tracing::enabled!(target: TARGET, Level::TRACE) || Span::current().is_none() {
        return Span::none();
    }
    let (method, url) = (request.method().as_str(), request.url());
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
        url.full = public_url(url),
        error.type = Empty,
    )
}

/// The URL without private parts.
fn public_url(url: &Url) -> String {
    format!(
        "{}://{}",
        url.scheme(),
        &url[Position::BeforeHost..Position::AfterPath]
    )
}

/// Records the status, if there is one.
pub(crate) fn record_response(span: &Span, answer: Result<u16, &ProviderError>) {
    if span.is_disabled() {
        return;
    }
    if let Ok(status) = answer {
        tracing::record_all!(span, http.response.status_code = i64::from(status));
    }
    let reason = match answer {
        Ok(..400) => return,
        Ok(status) => status.to_string(),
        Err(_) => outcome(answer).to_owned(),
    };
    tracing::record_all!(span, error.type = reason, otel.status_code = "ERROR");
}
