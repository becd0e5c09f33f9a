//! What every call has in common: a deadline, one line in the log, its measure.

use std::future::Future;
use std::time::{Duration, Instant};

use prometheus::{HistogramOpts, HistogramVec, Registry};
use tonic::metadata::MetadataMap;
use tonic::{Code, Response, Status};

use super::status;
use crate::session::Handle;
use crate::sessions::SessionsError;

/// The longest a caller may have us work for one answer.
const MAX_DEADLINE: Duration = Duration::from_secs(60);

/// Most digits of a `grpc-timeout` (gRPC over HTTP/2, "Timeout").
const TIMEOUT_DIGITS: usize = 8;

/// Bounds of the histogram of call durations, in seconds (OpenTelemetry semantic conventions for RPC).
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// A method, as it is named and how long it may take unless the caller says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) deadline: Duration,
}

/// Wraps calls; clones share what is measured.
#[derive(Clone)]
pub struct Calls {
    durations: HistogramVec,
}

impl Calls {
    /// Measures into the registry given; fails if it measures calls already.
    pub fn new(metrics: &Registry) -> Result<Self, prometheus::Error> {
        let options = HistogramOpts::new("rpc_server_call_duration_seconds", "How long calls took.")
            .buckets(BUCKETS.to_vec());
        let durations = HistogramVec::new(options, &["rpc_method", "rpc_response_status_code"])?;
        metrics.register(Box::new(durations.clone()))?;
        Ok(Self { durations })
    }

    /// Does the work of a call within its deadline, and says in one line what became of it.
    pub(super) async fn answer<T>(
        &self,
        method: Method,
        metadata: &MetadataMap,
        session: Option<Handle>,
        work: impl Future<Output = Result<T, SessionsError>>,
    ) -> Result<Response<T>, Status> {
        let began = Instant::now();
        let deadline = asked_deadline(metadata)
            .unwrap_or(method.deadline)
            .min(MAX_DEADLINE);
        let answer = match tokio::time::timeout(deadline, work).await {
            Ok(Ok(answer)) => Ok(Response::new(answer)),
            Ok(Err(error)) => {
                log_cause(method, session, &error);
                Err(status::of(&error))
            }
            Err(_) => Err(status::too_late()),
        };
        self.told(method, session, began, answer.as_ref().err());
        answer
    }

    fn told(&self, method: Method, session: Option<Handle>, began: Instant, failure: Option<&Status>) {
        let took = began.elapsed();
        let code = code_name(failure.map_or(Code::Ok, Status::code));
        self.durations
            .with_label_values(&[method.name, code])
            .observe(took.as_secs_f64());
        let session = session.map(|handle| handle.to_string()).unwrap_or_default();
        let reason = failure
            .and_then(session_proto::error::reason_of)
            .map(|reason| reason.as_str_name());
        tracing::info!(
            rpc.method = method.name,
            rpc.response.status_code = code,
            error.type = reason,
            session,
            duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            "call"
        );
    }
}

/// Faults of ours and of what we stand on, with their causes; a caller's mistakes are no news.
fn log_cause(method: Method, session: Option<Handle>, error: &SessionsError) {
    let session = session.map(|handle| handle.to_string()).unwrap_or_default();
    let cause = error as &dyn std::error::Error;
    match error {
        SessionsError::Unreadable(_)
        | SessionsError::CorruptStore(_)
        | SessionsError::NoRandomness(_)
        | SessionsError::Internal => {
            tracing::error!(
                rpc.method = method.name,
                session,
                error = cause,
                "a call failed on a fault of the service"
            );
        }
        SessionsError::StoreUnavailable(_) | SessionsError::Full => {
            tracing::warn!(
                rpc.method = method.name,
                session,
                error = cause,
                "the store did not do its work"
            );
        }
        SessionsError::Missing
        | SessionsError::Refused(_)
        | SessionsError::RefreshRefused
        | SessionsError::Invalid { .. }
        | SessionsError::StaleVersion
        | SessionsError::RequestIdReused
        | SessionsError::TooLarge { .. }
        | SessionsError::ProviderUnavailable => {}
    }
}

/// The deadline the caller asks for, if it asks in the form gRPC defines.
fn asked_deadline(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.is_empty()
        || number.len() > TIMEOUT_DIGITS
        || !number.bytes().all(|digit| digit.is_ascii_digit())
    {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number.saturating_mul(3_600))),
        "M" => Some(Duration::from_secs(number.saturating_mul(60))),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_read_in_every_unit_and_nonsense_is_passed_over() {
        let read = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            asked_deadline(&metadata)
        };
        assert_eq!(read("2S"), Some(Duration::from_secs(2)));
        assert_eq!(read("1500m"), Some(Duration::from_millis(1_500)));
        assert_eq!(read("1M"), Some(Duration::from_secs(60)));
        for nonsense in ["S", "-1S", "123456789S", "5x", "5"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
