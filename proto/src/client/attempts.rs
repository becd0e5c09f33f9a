//! The attempts of one call that are under way at once: the first, and others to further replicas while it is silent.
//!
//! Invariants
//! - The first answer counts, and what else is under way is dropped. Whoever was asked sooner and had said nothing is
//!   suspected: it has no further calls until it was connected to again.
//! - A replica that is there and slow, because its store is, has the whole time of the call. One whose connection brings
//!   nothing at all, no answer to a ping either, has [`SILENCE_MAX`].

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::Status;

use super::call::{ATTEMPTS_MAX, AttemptFailure, outcome};
use super::connection::ReplicaConnection;
use super::endpoint::ReplicaEndpoint;
use super::pool::Pool;
use super::resolution::Picked;

/// A connection that brings nothing for so long is one to a replica that was cut off or has stopped: it brings the answers to pings.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// How often it is looked at whether a connection has brought anything.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// No answer came.
pub(super) enum NoAnswer {
    /// The time is over.
    Late,
    /// The connection is silent.
    Silent,
}

/// What is given when the time of a call is over.
pub(super) struct CallTime {
    /// When the call has to be answered.
    pub(super) until: Instant,
    /// How long one replica may be silent before another is asked as well; none if no other may be.
    pub(super) patience: Option<Duration>,
}

/// Sends to the replica picked, and to others while none answers.
pub(super) async fn answered<R, F>(
    pool: &Arc<Pool>,
    picked: &Picked,
    time: &CallTime,
    send: &impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, AttemptFailure>
where
    F: Future<Output = Result<R, Status>>,
{
    let until = time.until;
    let first = pin!(send(Arc::clone(&picked.connection), until));
    match time.patience {
        // Sent once: its caller is told nothing it might take for a failure while there is time.
        None => {
            let answer = timeout_at(until, first).await;
            outcome(picked, answer.map_err(|_elapsed| NoAnswer::Late))
        }
        Some(patience) => among_others(pool, picked, (until, patience), first, send).await,
    }
}

/// As [`answered`], for a call that others may be asked for as well.
async fn among_others<R, F>(
    pool: &Arc<Pool>,
    picked: &Picked,
    (until, patience): (Instant, Duration),
    mut first: std::pin::Pin<&mut F>,
    send: &impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, AttemptFailure>
where
    F: Future<Output = Result<R, Status>>,
{
    let mut next_at = Instant::now() + patience;
    // Nearly every call ends here, with one timer and without an allocation.
    if let Ok(answer) = timeout_at(next_at.min(until), first.as_mut()).await {
        return outcome(picked, Ok(answer));
    }
    let mut asked = vec![Arc::clone(&picked.replica)];
    let mut silent = vec![true];
    let mut answers = FuturesUnordered::new();
    answers.push(Either::Left(Box::pin(async {
        (
            0,
            outcome(picked, unless_silent(first, &picked.connection, until).await),
        )
    })));
    loop {
        tokio::select! {
            biased;
            Some((index, answer)) = answers.next() => {
                if let Some(silent) = silent.get_mut(index) {
                    *silent = false;
                }
                match answer {
                    Ok(response) => {
                        suspect_silent(asked.iter().zip(&silent).take(index));
                        return Ok(response);
                    }
                    // What the service says is not asked again; the others may still answer.
                    Err(failure) if answers.is_empty() || !failure.is_of_the_way() => return Err(failure),
                    Err(_) => {}
                }
            }
            () = sleep_until(next_at), if asked.len() < ATTEMPTS_MAX as usize => {
                next_at += patience;
                if let Some(other) = pool.another(&asked) {
                    let index = asked.len();
                    asked.push(Arc::clone(&other));
                    silent.push(true);
                    answers.push(Either::Right(Box::pin(async move {
                        (index, anew(other, until, send).await)
                    })));
                }
            }
        }
    }
}

/// Those asked before the one that answered, each with whether it still is silent: they are left out.
fn suspect_silent<'a>(sooner: impl Iterator<Item = (&'a Arc<ReplicaEndpoint>, &'a bool)>) {
    for (replica, _) in sooner.filter(|(_, silent)| **silent) {
        replica.suspect();
    }
}

/// Asks a replica, which is connected to where it is not.
async fn anew<R, F>(
    replica: Arc<ReplicaEndpoint>,
    until: Instant,
    send: &impl Fn(Arc<ReplicaConnection>, Instant) -> F,
) -> Result<R, AttemptFailure>
where
    F: Future<Output = Result<R, Status>>,
{
    let connection = replica.connect().await.map_err(AttemptFailure::Unsent)?;
    let answer = pin!(send(Arc::clone(&connection), until));
    let answer = unless_silent(answer, &connection, until).await;
    outcome(&Picked { replica, connection }, answer)
}

/// An answer that comes in time, over a connection that is not silent.
async fn unless_silent<R>(
    mut answer: std::pin::Pin<&mut impl Future<Output = Result<R, Status>>>,
    connection: &ReplicaConnection,
    until: Instant,
) -> Result<Result<R, Status>, NoAnswer> {
    let (mut seen, mut since) = (connection.reads_of_socket(), Instant::now());
    loop {
        let look_at = (Instant::now() + LOOK_INTERVAL).min(until);
        if let Ok(answer) = timeout_at(look_at, answer.as_mut()).await {
            return Ok(answer);
        }
        let (now, read) = (Instant::now(), connection.reads_of_socket());
        if read != seen {
            (seen, since) = (read, now);
        } else if now >= since + SILENCE_MAX {
            return Err(NoAnswer::Silent);
        }
        if now >= until {
            return Err(NoAnswer::Late);
        }
    }
}
