//! Adds the identifiers of a request for all hops: the request ID, and the trace (W3C Trace Context).
//!
//! The edge continues the client's trace: with its own span if traces are recorded here, unchanged otherwise.
//! If the request has no trace, the edge starts an unsampled one, named after the request ID.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use chassis::audit::RequestId;
use chassis::propagation::{self, TRACEPARENT};
use chassis::traces::TARGET;
use tracing::Span;
use tracing::field::Empty;

use crate::http::observe::{X_REQUEST_ID, id_header, known_method, original, span_name};

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Writes the request ID and the trace into the headers of a request for an upstream.
pub(super) fn continue_trace(headers: &mut HeaderMap, id: Option<RequestId>) {
    if let Some(id) = id {
        headers.insert(X_REQUEST_ID, id_header(id));
    }
    let ours = propagation::outgoing();
    if ours.is_empty() && propagation::is_begun(headers) {
        return;
    }
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
    if ours.is_empty()
        && let Some(begun) = id.and_then(begin)
    {
        headers.insert(TRACEPARENT, begun);
    }
    headers.extend(ours);
}

/// The span of a request to an upstream, if traces are recorded. Leaves out the application's query.
pub(super) fn of_request(request: &Request) -> Span {
    if !chassis::traces::are_recorded() {
        return Span::none();
    }
    let (method, url) = (known_method(request.method()), request.uri());
    tracing::trace_span!(
        target: TARGET,
        "upstream",
        otel.name = span_name(method, None),
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = method,
        http.request.method_original = original(request.method()),
        http.response.status_code = Empty,
        server.address = url.host(),
        server.port = port(url),
        url.full = url_without_query(url),
        error.type = Empty,
    )
}

/// The port, or the scheme's default if the address names none.
fn port(url: &Uri) -> Option<i64> {
    let of_scheme = match url.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    };
    url.port_u16().or(of_scheme).map(i64::from)
}

/// An upstream's address without the query. It has no userinfo: the route table rejects such addresses.
fn url_without_query(url: &Uri) -> Option<String> {
    let (scheme, authority) = (url.scheme_str()?, url.authority()?);
    Some(format!("{scheme}://{authority}{}", url.path()))
}

/// Records the outcome in the span; `None` means a broken connection.
pub(super) fn record_response(span: &Span, status: Option<StatusCode>) {
    if let Some(status) = status {
        tracing::record_all!(span, http.response.status_code = i64::from(status.as_u16()));
    }
    if status.is_none_or(|status| status.is_client_error() || status.is_server_error()) {
        let reason = status.as_ref().map_or("broken", StatusCode::as_str);
        tracing::record_all!(span, error.type = reason, otel.status_code = "ERROR");
    }
}

/// A new unsampled trace with this request's ID (W3C Trace Context, section 3.2).
fn begin(id: RequestId) -> Option<HeaderValue> {
    // A span ID of all zeros is invalid.
    let span = rand::random::<u64>().max(1);
    HeaderValue::try_from(format!("00-{}-{span:016x}-00", id.as_str())).ok()
}

#[cfg(test)]
mod tests {
    use super::{Uri, port, url_without_query};

    #[test]
    fn an_address_is_told_with_its_port_and_without_its_query() {
        for (url, expected, number) in [
            (
                "http://orders:8080/a/7?code=x&state=y",
                "http://orders:8080/a/7",
                8080,
            ),
            ("http://orders/", "http://orders/", 80),
            ("https://[::1]/a", "https://[::1]/a", 443),
        ] {
            let url: Uri = url.parse().unwrap();
            assert_eq!(
                (url_without_query(&url).as_deref(), port(&url)),
                (Some(expected), Some(number))
            );
        }
    }
}
