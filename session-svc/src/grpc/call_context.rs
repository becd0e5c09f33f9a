//! State that all calls share: the callers' rights, the metrics, and the way writes are completed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chassis::audit::{RepeatedRecords, carried};
use chassis::clock::Clock;
use prometheus::{
    HistogramVec, IntGaugeVec, Registry, register_histogram_vec_with_registry,
    register_int_gauge_vec_with_registry,
};
use session_proto::v1::ErrorReason;
use tokio_util::task::TaskTracker;
use tonic::{Response, Status};
use tracing::Instrument as _;

use super::call::Call;
use super::deadline::MAX_DEADLINE;
use super::status;
use crate::callers::{Callers, Rpc};
use crate::sessions::SessionsError;

/// The bounds of the histogram of call durations, in seconds (OpenTelemetry semantic conventions for RPC).
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// State that all calls share; clones share it too.
#[derive(Clone)]
pub struct CallContext {
    pub(super) callers: Callers,
    pub(super) durations: HistogramVec,
    writes: TaskTracker,
    /// Open watches, by their scope.
    pub(super) watches: IntGaugeVec,
    /// Audit records that callers can repeat.
    pub(super) records: Arc<RepeatedRecords>,
}

impl CallContext {
    /// Measures calls in this registry; fails if it already measures calls.
    pub fn new(
        callers: Callers,
        metrics: &Registry,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, prometheus::Error> {
        let durations = register_histogram_vec_with_registry!(
            "rpc_server_call_duration_seconds",
            "How long calls took.",
            &["rpc_method", "rpc_response_status_code"],
            BUCKETS.to_vec(),
            metrics
        )?;
        let watches = register_int_gauge_vec_with_registry!(
            "session_watches",
            "Open watches, by scope: all sessions, those of a user, of a provider, or one.",
            &["scope"],
            metrics
        )?;
        for scope in ["all", "person", "provider", "session"] {
            watches.with_label_values(&[scope]);
        }
        Ok(Self {
            callers,
            durations,
            writes: TaskTracker::new(),
            watches,
            records: RepeatedRecords::start(clock),
        })
    }

    /// Waits at most this long for writes that continue without their callers.
    pub(crate) async fn drained(&self, limit: Duration) {
        self.writes.close();
        if tokio::time::timeout(limit, self.writes.wait()).await.is_err() {
            tracing::warn!("writes in flight did not finish in time and are cut off");
        }
    }

    /// Completes the work of a call once it has begun, even if the caller leaves: writes of several steps
    /// must not stop between two of them.
    pub(super) async fn complete<T: Send + 'static>(
        &self,
        rpc: Rpc,
        call: &Call,
        work: impl Future<Output = Result<T, SessionsError>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        // Drops a call that its caller gave up before it began, while this process was paused: the caller may
        // have retried it elsewhere and made other changes since.
        tokio::task::yield_now().await;
        let call = call.clone();
        let to_the_end = async move {
            // Work that exceeds every caller's deadline never ends.
            let outcome = tokio::time::timeout(MAX_DEADLINE, work).await;
            conclude(rpc, &call, outcome.unwrap_or(Err(SessionsError::Internal)))
        };
        let task = self.writes.spawn(carried(to_the_end.in_current_span()));
        let answer = task.await;
        answer
            .unwrap_or_else(|_| Err(status::of(&SessionsError::Internal)))
            .map(Response::new)
    }
}

/// The response of a completed call; faults are logged. Work outside [`CallContext::complete`] stops when the
/// caller leaves or the deadline passes: reads and single-step writes. Takes the outcome and not the work,
/// since the caller would store a future argument twice.
pub(super) fn conclude<T>(rpc: Rpc, call: &Call, outcome: Result<T, SessionsError>) -> Result<T, Status> {
    outcome.map_err(|error| {
        log_cause(rpc, call, &error);
        status::of(&error)
    })
}

/// Logs faults of the service and of its store with their causes, but no mistakes of callers.
fn log_cause(rpc: Rpc, call: &Call, error: &SessionsError) {
    let session = call.notes.session.get().map(tracing::field::display);
    let cause = error as &dyn std::error::Error;
    let trace_id = chassis::propagation::trace_id(&tracing::Span::current());
    match status::reason(error) {
        ErrorReason::ErrInternal => {
            tracing::error!(
                rpc.method = rpc.name(),
                session,
                error = cause,
                trace_id,
                "a call failed because of an internal error"
            );
        }
        ErrorReason::ErrStoreUnavailable | ErrorReason::ErrOverloaded => {
            tracing::warn!(
                rpc.method = rpc.name(),
                session,
                error = cause,
                trace_id,
                "the store is unavailable or overloaded"
            );
        }
        // A caller's mistake, or logged where it was found.
        _ => {}
    }
}
