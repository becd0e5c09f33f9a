//! One call: deadline, choice of a replica, retries.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::transport::Channel;
use tonic::{Code, ConnectError, Request, Response, Status, Streaming};

use super::SessionError;
use super::channels::StreamPermit;
use super::connection::ReplicaConnection;
use super::endpoint::ReplicaEndpoint;
use super::pool::{Picked, Pool};
use crate::error;
use crate::v1::ErrorReason;

/// First try included. Three reach every replica of a usual deployment without multiplying the load of an outage.
const ATTEMPTS_MAX: u32 = 3;

/// Requests larger than this are not sent: the service reads no larger ones.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// Pause before the second attempt; the third waits twice as long. Half of it is random.
const BACKOFF: Duration = Duration::from_millis(20);

/// Whether a call may be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Sending it twice does what sending it once does.
    Safe,
    /// Only if it never reached a server.
    OnlyUnsent,
}

impl Repeat {
    pub(super) fn safe_if(safe: bool) -> Self {
        if safe { Self::Safe } else { Self::OnlyUnsent }
    }
}

/// Makes a call of `request`, which `send` sends to a replica for an answer by the time given.
pub(super) async fn unary<R, F>(
    pool: &Arc<Pool>,
    deadline: Duration,
    repeat: Repeat,
    request: &impl Message,
    send: impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, SessionError>
where
    F: Future<Output = Result<R, Status>>,
{
    if request.encoded_len() > REQUEST_BYTES_MAX {
        return Err(SessionError::too_large());
    }
    let until = Instant::now() + deadline;
    let mut attempt = 1;
    loop {
        let picked = timeout_at(until, pool.pick())
            .await
            .map_err(|_elapsed| SessionError::late())?;
        let failure = match picked {
            Err(nobody) => AttemptFailure::Unsent(nobody),
            Ok(Picked { replica, connection }) => {
                // A replica that hangs costs a call that may be repeated only its share of the time.
                let alone = repeat == Repeat::OnlyUnsent || pool.size() == 1;
                let share = if alone { until } else { share_of(until, attempt) };
                match outcome(&replica, timeout_at(share, send(connection, share)).await) {
                    Ok(response) => return Ok(response),
                    Err(failure) => failure,
                }
            }
        };
        let over = attempt == ATTEMPTS_MAX || Instant::now() >= until;
        if over || !failure.may_repeat(repeat) {
            return Err(failure.into());
        }
        // Where a connection went, another one is at hand.
        if !matches!(failure, AttemptFailure::Gone(_)) {
            sleep_until((Instant::now() + backoff(BACKOFF * attempt)).min(until)).await;
        }
        attempt += 1;
    }
}

/// A stream that was opened, and over which connection, where it counts as long as this is held.
pub(super) struct OpenedStream<R> {
    pub(super) events: Streaming<R>,
    pub(super) connection: Arc<ReplicaConnection>,
    _permit: StreamPermit,
}

/// Opens a stream to a replica. The deadline covers opening it, not the stream.
pub(super) async fn stream<Q, R, F>(
    pool: &Pool,
    Picked { replica, connection }: &Picked,
    until: Instant,
    request: Q,
    open: impl FnOnce(Channel, Request<Q>) -> F,
) -> Result<OpenedStream<R>, SessionError>
where
    F: Future<Output = Result<Response<Streaming<R>>, Status>>,
{
    let mut request = Request::new(request);
    pool.annotate(request.metadata_mut());
    let permitted = timeout_at(until, replica.for_stream(connection)).await;
    let (connection, permit) = outcome(replica, permitted)?;
    let opened = timeout_at(until, open(connection.channel(), request)).await;
    let events = outcome(replica, opened)?.into_inner();
    Ok(OpenedStream {
        events,
        connection,
        _permit: permit,
    })
}

/// Why an attempt failed.
enum AttemptFailure {
    /// This was said, by the service or by the transport.
    Said(Status),
    /// Nothing was said in time.
    Silence,
    /// The connection went before this was sent.
    Gone(Status),
    /// There was nobody to send it to.
    Unsent(Status),
}

fn outcome<R, E>(
    replica: &ReplicaEndpoint,
    outcome: Result<Result<R, Status>, E>,
) -> Result<R, AttemptFailure> {
    match outcome {
        Ok(Ok(response)) => {
            replica.answered();
            Ok(response)
        }
        // Whether the replica is to be left out shows when it is connected to again.
        Ok(Err(status)) if went_before(&status) => Err(AttemptFailure::Gone(status)),
        Ok(Err(status)) if is_transport(&status) => {
            replica.failed();
            Err(AttemptFailure::Said(status))
        }
        Ok(Err(status)) => {
            replica.answered();
            Err(AttemptFailure::Said(status))
        }
        Err(_elapsed) => {
            replica.failed();
            Err(AttemptFailure::Silence)
        }
    }
}

impl AttemptFailure {
    fn may_repeat(&self, repeat: Repeat) -> bool {
        match (self, repeat) {
            (Self::Silence, Repeat::Safe) => true,
            (Self::Silence, Repeat::OnlyUnsent) => false,
            (Self::Said(status), Repeat::Safe) => is_transport(status) || ran_out_of_time(status),
            (Self::Said(_), Repeat::OnlyUnsent) => false,
            (Self::Gone(_) | Self::Unsent(_), _) => true,
        }
    }
}

impl From<AttemptFailure> for SessionError {
    fn from(failure: AttemptFailure) -> Self {
        match failure {
            AttemptFailure::Said(status) | AttemptFailure::Gone(status) | AttemptFailure::Unsent(status) => {
                status.into()
            }
            AttemptFailure::Silence => Self::late(),
        }
    }
}

/// The service did not say this: the connection did (refused, reset, closed, or gone away in mid-call).
pub(super) fn is_transport(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Cancelled | Code::Internal | Code::Unknown
    ) && error::reason_of(status).is_none()
}

/// The service gave up when the time this attempt had was over.
fn ran_out_of_time(status: &Status) -> bool {
    error::reason_of(status) == Some(ErrorReason::ErrDeadlineExceeded)
}

/// The connection was gone, and none is made while a call waits: no server has seen it.
fn went_before(status: &Status) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// When attempt number `attempt` has to be answered: it has an equal share of the time that is left.
fn share_of(until: Instant, attempt: u32) -> Instant {
    let now = Instant::now();
    now + until.saturating_duration_since(now) / (ATTEMPTS_MAX + 1 - attempt)
}

/// A pause of `full`, half of it random.
pub(super) fn backoff(full: Duration) -> Duration {
    // RandomState is seeded at random by the standard library: enough to keep callers from retrying in step.
    let jitter = RandomState::new().hash_one(full) % 1000;
    full / 2 + full * u32::try_from(jitter).unwrap_or(0) / 2000
}
