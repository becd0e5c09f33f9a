//! One call: deadline, choice of a replica, retries, and hedging over other replicas while one is silent.
//!
//! Invariants
//! - The first answer counts, and the client drops the other attempts. A replica that was asked earlier and
//!   is still silent gets no further calls until the client has reconnected to it.
//! - A slow replica can use the call's whole time. A connection without ping answers fails
//!   (`KEEPALIVE_TIMEOUT`).

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use prost::Message;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tonic::{Code, ConnectError, Request, Response, Status, Streaming};
use tracing::{Instrument as _, Span};

use super::connection::{FIRST_WORD_MAX, ReplicaConnection};
use super::endpoint::{ReplicaChoice, ReplicaEndpoint};
use super::failure::SessionError;
use super::pool::Pool;
use super::span;
use super::stream_connections::StreamPermit;
use crate::error;
use crate::v1::ErrorReason;

/// Most attempts, the first included. Three reach all replicas of a usual deployment and add little load.
const ATTEMPTS_MAX: u32 = 3;

/// Larger requests are not sent, because the service rejects them.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// Pause before the second attempt; the third waits twice as long. Half of it is random.
const BACKOFF: Duration = Duration::from_millis(20);

/// How long a read waits for one replica before the client asks another: many times what a read takes.
const READ_PATIENCE: Duration = Duration::from_millis(250);

/// The same for calls that change something or may wait for a provider.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a call may be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It may, at almost no cost. The client soon asks another replica.
    Soon,
    /// It may: two calls have the effect of one.
    Safe,
    /// Only if it never reached a server.
    OnlyUnsent,
}

impl Repeat {
    pub(super) fn safe_if(safe: bool) -> Self {
        if safe { Self::Safe } else { Self::OnlyUnsent }
    }

    /// How long one replica may be silent, in a call with this deadline, before the client asks another.
    fn patience(self, deadline: Duration) -> Option<Duration> {
        let patience = match self {
            Self::Soon => READ_PATIENCE,
            Self::Safe => PATIENCE,
            Self::OnlyUnsent => return None,
        };
        Some(patience.min(deadline / ATTEMPTS_MAX))
    }
}

/// Calls `method` with `request` in a span. `send` sends the request to a replica, until the given time.
pub(super) async fn unary<R, F>(
    pool: &Arc<Pool>,
    method: &'static str,
    deadline: Duration,
    repeat: Repeat,
    request: &impl Message,
    send: impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, SessionError>
where
    F: Future<Output = Result<R, Status>>,
{
    let span = span::of_call(method);
    // Pinned here: the branches below would each copy the whole future.
    let answer = pin!(call_with_retries(pool, &span, deadline, repeat, request, send));
    if span.is_disabled() {
        return answer.await;
    }
    let answer = answer.instrument(span.clone()).await;
    match &answer {
        Ok(_) => span::record_success(&span),
        Err(error) => span::record_failure(&span, error),
    }
    answer
}

async fn call_with_retries<R, F>(
    pool: &Arc<Pool>,
    span: &Span,
    deadline: Duration,
    repeat: Repeat,
    request: &impl Message,
    send: impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, SessionError>
where
    F: Future<Output = Result<R, Status>>,
{
    if request.encoded_len() > REQUEST_BYTES_MAX {
        let reason = ErrorReason::ErrRequestTooLarge;
        let message = "the message is larger than the session service reads";
        return Err(SessionError::of(reason, message));
    }
    let begun = Instant::now();
    let until = begun + deadline;
    let mut attempt = 1;
    // Replicas that lack the key of the record.
    let mut without_key = Vec::new();
    loop {
        let picked = timeout_at(until, pool.pick_besides(&without_key))
            .await
            .map_err(|_elapsed| SessionError::late())?;
        let failure = match picked {
            Err(no_connection) => AttemptFailure::Unsent(no_connection),
            Ok(picked) => {
                if !span.is_disabled() && attempt == 1 {
                    pool.target_of(&picked.replica.id)
                        .inspect(|target| span::sent_to(span, target));
                }
                let replica = Arc::clone(&picked.replica);
                let sent = match repeat.patience(deadline) {
                    None => attempt_once(picked, until, &send).await,
                    Some(patience) => attempt_on_several(pool, picked, until, patience, &send).await,
                };
                match sent {
                    Ok(response) => return Ok(response),
                    Err(failure) => {
                        if failure.lacks_key() {
                            without_key.push(replica);
                        }
                        failure
                    }
                }
            }
        };
        let now = Instant::now();
        // After a long wait for a connection, a retry would only wait again.
        let waited = matches!(failure, AttemptFailure::Unsent(_)) && now >= begun + FIRST_WORD_MAX;
        let all_lack_key = failure.lacks_key() && pool.another(&without_key).is_none();
        let over = attempt == ATTEMPTS_MAX || now >= until || waited || all_lack_key;
        if over || !failure.may_repeat(repeat) {
            return Err(failure.into());
        }
        // No pause in these two cases: another connection or replica is available.
        if !matches!(failure, AttemptFailure::Gone(_)) && !failure.lacks_key() {
            sleep_until((now + backoff(BACKOFF * attempt)).min(until)).await;
        }
        attempt += 1;
    }
}

/// Sends a call to this replica.
async fn attempt_once<R, F>(
    picked: ReplicaChoice,
    until: Instant,
    send: &impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, AttemptFailure>
where
    F: Future<Output = Result<R, Status>>,
{
    let answer = timeout_at(until, send(Arc::clone(&picked.connection), until)).await;
    outcome(&picked, answer)
}

/// Sends a call to this replica. Without an answer, asks another one after each `patience` or failed attempt.
async fn attempt_on_several<R, F>(
    pool: &Pool,
    picked: ReplicaChoice,
    until: Instant,
    patience: Duration,
    send: &impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, AttemptFailure>
where
    F: Future<Output = Result<R, Status>>,
{
    let replica = Arc::clone(&picked.replica);
    let mut first = pin!(attempt_once(picked, until, send));
    // Almost all calls end here.
    if let Ok(sent) = timeout(patience, first.as_mut()).await {
        return sent;
    }
    let mut asked = vec![Arc::clone(&replica)];
    let mut silent = asked.clone();
    let mut attempts = FuturesUnordered::from_iter([async { (replica, first.await) }.left_future()]);
    let attempt_by = |replica: Arc<ReplicaEndpoint>| async move {
        let sent = match replica.connect().await {
            Ok(picked) => attempt_once(picked, until, send).await,
            Err(status) => Err(AttemptFailure::Unsent(status)),
        };
        (replica, sent)
    };
    loop {
        if asked.len() < ATTEMPTS_MAX as usize
            && let Some(other) = pool.another(&asked)
        {
            asked.push(Arc::clone(&other));
            silent.push(Arc::clone(&other));
            attempts.push(attempt_by(other).right_future());
        }
        match timeout(patience, attempts.next()).await {
            Ok(Some((replica, sent))) => {
                let at = silent.iter().position(|other| Arc::ptr_eq(other, &replica));
                match sent {
                    Ok(response) => {
                        let earlier = silent.iter().take(at.unwrap_or_default());
                        earlier.for_each(|replica| replica.suspect());
                        return Ok(response);
                    }
                    // An answer of the service is final. Otherwise other replicas may still answer.
                    Err(failure) if attempts.is_empty() || !failure.is_of_the_way() => return Err(failure),
                    Err(_) => _ = at.map(|at| silent.remove(at)),
                }
            }
            // Not reached: the branch above returns the failure of the last attempt.
            Ok(None) => return Err(AttemptFailure::Silence),
            Err(_elapsed) => {}
        }
    }
}

/// An open stream, and its connection, which counts the stream while this is held.
pub(super) struct OpenedStream<R> {
    pub(super) events: Streaming<R>,
    pub(super) connection: Arc<ReplicaConnection>,
    _permit: StreamPermit,
}

/// Opens a stream to a replica. The deadline covers opening it, not the stream.
pub(super) async fn stream<Q, R, F>(
    pool: &Pool,
    picked: &ReplicaChoice,
    until: Instant,
    request: Q,
    open: impl FnOnce(Arc<ReplicaConnection>, Request<Q>) -> F,
) -> Result<OpenedStream<R>, SessionError>
where
    F: Future<Output = Result<Response<Streaming<R>>, Status>>,
{
    let mut request = Request::new(request);
    pool.annotate(request.metadata_mut());
    let permitted = timeout_at(until, picked.replica.for_stream()).await;
    let (connection, permit) = outcome(picked, permitted)?;
    let opened = timeout_at(until, open(Arc::clone(&connection), request)).await;
    let events = outcome(picked, opened)?.into_inner();
    Ok(OpenedStream {
        events,
        connection,
        _permit: permit,
    })
}

/// Why an attempt failed.
enum AttemptFailure {
    /// The service or the transport returned this status.
    Said(Status),
    /// No answer arrived in time.
    Silence,
    /// The connection was closed before the call was sent.
    Gone(Status),
    /// There was no connection to a replica.
    Unsent(Status),
}

/// Records the answer, or its absence, for the replica and classifies it for the call.
fn outcome<R>(
    picked: &ReplicaChoice,
    outcome: Result<Result<R, Status>, Elapsed>,
) -> Result<R, AttemptFailure> {
    let replica = &picked.replica;
    match outcome {
        Ok(Ok(response)) => {
            replica.record_success();
            Ok(response)
        }
        // Not recorded as a failure: the next connect decides whether the replica is ejected.
        Ok(Err(status)) if went_before(&status) => Err(AttemptFailure::Gone(status)),
        Ok(Err(status)) if is_transport(&status) => {
            replica.record_failure();
            Err(AttemptFailure::Said(status))
        }
        Ok(Err(status)) => {
            replica.record_success();
            Err(AttemptFailure::Said(status))
        }
        Err(_elapsed) => {
            replica.record_failure();
            Err(AttemptFailure::Silence)
        }
    }
}

impl AttemptFailure {
    fn may_repeat(&self, repeat: Repeat) -> bool {
        match (self, repeat) {
            (Self::Silence, Repeat::Soon | Repeat::Safe) => true,
            (Self::Silence, Repeat::OnlyUnsent) => false,
            // The replica could not read the record and did nothing.
            (Self::Said(status), _) if lacks_key(status) => true,
            (Self::Said(status), Repeat::Soon | Repeat::Safe) => {
                is_transport(status) || ran_out_of_time(status)
            }
            (Self::Said(_), Repeat::OnlyUnsent) => false,
            (Self::Gone(_) | Self::Unsent(_), _) => true,
        }
    }

    /// Whether the connection or the replica failed, so that another replica may answer the call.
    fn is_of_the_way(&self) -> bool {
        match self {
            Self::Said(status) => is_transport(status),
            Self::Silence | Self::Gone(_) | Self::Unsent(_) => true,
        }
    }

    /// Whether the replica lacks the key of the record.
    fn lacks_key(&self) -> bool {
        matches!(self, Self::Said(status) if lacks_key(status))
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

/// Whether the connection failed (refused, reset, closed, or gone away in mid-call), not the service.
pub(super) fn is_transport(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Cancelled | Code::Internal | Code::Unknown
    ) && error::reason_of(status).is_none()
}

/// Whether the service stopped at the deadline of this attempt.
fn ran_out_of_time(status: &Status) -> bool {
    error::reason_of(status) == Some(ErrorReason::ErrDeadlineExceeded)
}

/// Whether the replica lacks the key of the record.
fn lacks_key(status: &Status) -> bool {
    error::reason_of(status) == Some(ErrorReason::ErrUnknownEncryptionKey)
}

/// Whether the connection was closed before the call, so that no server received it.
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

/// A pause of `full`, half of it random.
pub(super) fn backoff(full: Duration) -> Duration {
    // The standard library seeds RandomState at random, which keeps callers from retrying in step.
    let jitter = RandomState::new().hash_one(full) % 1000;
    full / 2 + full * u32::try_from(jitter).unwrap_or(0) / 2000
}
