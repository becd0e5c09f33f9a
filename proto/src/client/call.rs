//! One call: deadline, choice of a replica, retries.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::transport::Channel;
use tonic::{Code, ConnectError, Request, Response, Status, Streaming};

use super::SessionError;
use super::pool::Pool;
use crate::error;

/// First try included. Three reach every replica of a usual deployment without multiplying the load of an outage.
const ATTEMPTS_MAX: u32 = 3;

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

pub(super) async fn unary<Q, R, F>(
    pool: &Arc<Pool>,
    deadline: Duration,
    repeat: Repeat,
    request: Q,
    send: impl Fn(Channel, Request<Q>) -> F,
) -> Result<R, SessionError>
where
    Q: Clone,
    F: Future<Output = Result<Response<R>, Status>>,
{
    let until = Instant::now() + deadline;
    let mut attempt = 1;
    loop {
        let outcome = timeout_at(until, async {
            let peer = pool.pick().await?;
            let answer = send(peer.channel(), pool.request(request.clone(), until)).await;
            Ok::<_, Status>((peer, answer))
        })
        .await;
        let status = match outcome {
            Err(_elapsed) => return Err(SessionError::late()),
            Ok(Err(unresolved)) => unresolved,
            Ok(Ok((_, Ok(response)))) => return Ok(response.into_inner()),
            Ok(Ok((peer, Err(status)))) => {
                if is_transport(&status) {
                    peer.failed();
                }
                status
            }
        };
        let may_repeat = is_transport(&status) && (repeat == Repeat::Safe || was_never_sent(&status));
        if !may_repeat || attempt == ATTEMPTS_MAX {
            return Err(status.into());
        }
        sleep_until((Instant::now() + backoff(attempt)).min(until)).await;
        attempt += 1;
    }
}

pub(super) async fn stream<Q, R, F>(
    pool: &Arc<Pool>,
    deadline: Duration,
    request: Q,
    open: impl FnOnce(Channel, Request<Q>) -> F,
) -> Result<Streaming<R>, SessionError>
where
    F: Future<Output = Result<Response<Streaming<R>>, Status>>,
{
    let until = Instant::now() + deadline;
    timeout_at(until, async {
        let peer = pool.pick().await?;
        let mut request = Request::new(request);
        pool.annotate(request.metadata_mut());
        open(peer.channel(), request).await.inspect_err(|status| {
            if is_transport(status) {
                peer.failed();
            }
        })
    })
    .await
    .map_err(|_elapsed| SessionError::late())?
    .map(Response::into_inner)
    .map_err(SessionError::from)
}

/// The service did not say this: the connection did (refused, reset, closed, or gone away in mid-call).
fn is_transport(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Cancelled | Code::Internal | Code::Unknown
    ) && error::reason_of(status).is_none()
}

/// No connection was made, so no server has seen the call.
fn was_never_sent(status: &Status) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn backoff(attempt: u32) -> Duration {
    let full = BACKOFF * attempt;
    // RandomState is seeded at random by the standard library: enough to keep callers from retrying in step.
    let jitter = RandomState::new().hash_one(attempt) % 1000;
    full / 2 + full * u32::try_from(jitter).unwrap_or(0) / 2000
}
