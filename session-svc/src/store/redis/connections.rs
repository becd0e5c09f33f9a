//! Connections to the servers: made and checked by the pool, held here, and shared by all calls.
//!
//! Invariants
//! - A call uses a clone of a multiplexed handle: no checkout, no extra command, no lock across an await.
//! - Every wait is bounded. A connection that failed is given back to the pool, which checks or replaces it;
//!   while the server is away, one call at a time tries and the others are told at once.
//! - Only reads are repeated, once, and only when their connection broke.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use deadpool_redis::redis::{
    Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind,
};
use tokio::sync::Mutex;

use crate::store::url::RedisSettings;

use super::source::{SetupError, Source, Wire};

/// Connections held: one carries everything, a second keeps small answers from waiting behind a large one.
pub(super) const LANES: usize = 2;

/// Longest wait for everything one call does, connecting again included.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(3_000);

/// After a failed attempt to connect nobody tries again for this long.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// A connection in use, and the pool's hold on it.
struct Held {
    wire: Wire,
    number: usize,
    _from_pool: Option<deadpool_redis::Connection>,
}

#[derive(Default)]
struct Lane {
    held: RwLock<Option<Held>>,
    /// When and why connecting failed last.
    connecting: Mutex<Option<(Instant, RedisError)>>,
}

/// The connections of one store.
pub(super) struct Connections {
    source: Source,
    lanes: [Lane; LANES],
    turn: AtomicUsize,
    made: AtomicUsize,
}

impl Connections {
    /// Prepares them; connects when first used.
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, SetupError> {
        let source = Source::new(settings)?;
        Ok(Self {
            source,
            lanes: Default::default(),
            turn: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
        })
    }

    /// Sends a command that may be repeated.
    pub(super) async fn read<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        match self.once(command).await {
            Err(error) if breaks(&error) && !error.is_timeout() => self.once(command).await,
            answer => answer,
        }
    }

    /// Sends a command once.
    pub(super) async fn once<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        bounded(self.on_lane(async |wire| command.query_async(wire).await)).await
    }

    /// Sends several commands once, in one round trip.
    pub(super) async fn together<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        bounded(self.on_lane(async |wire| pipeline.query_async(wire).await)).await
    }

    async fn on_lane<T>(&self, send: impl AsyncFnOnce(&mut Wire) -> RedisResult<T>) -> RedisResult<T> {
        let lane = &self.lanes[self.turn.fetch_add(1, Ordering::Relaxed) % LANES];
        let (mut wire, number) = match lane.wire() {
            Some(found) => found,
            None => self.connect(lane).await?,
        };
        let answer = send(&mut wire).await;
        if let Err(error) = &answer
            && breaks(error)
        {
            lane.let_go(number);
        }
        answer
    }

    async fn connect(&self, lane: &Lane) -> RedisResult<(Wire, usize)> {
        let mut failed = lane.connecting.lock().await;
        if let Some(found) = lane.wire() {
            return Ok(found);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < CONNECT_PAUSE
        {
            return Err(error.clone());
        }
        match bounded(self.source.pooled()).await {
            Ok((wire, from_pool)) => {
                *failed = None;
                let number = self.made.fetch_add(1, Ordering::Relaxed);
                let held = Held {
                    wire: wire.clone(),
                    number,
                    _from_pool: from_pool,
                };
                *lane.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
                Ok((wire, number))
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// A connection of its own for a listener that waits for up to `answer_timeout`.
    pub(super) async fn listener(&self, answer_timeout: Duration) -> RedisResult<Wire> {
        bounded(self.source.apart(answer_timeout)).await
    }
}

impl Lane {
    fn wire(&self) -> Option<(Wire, usize)> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|held| (held.wire.clone(), held.number))
    }

    /// Lets connection `number` go, if it was not replaced meanwhile.
    fn let_go(&self, number: usize) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_some_and(|held| held.number == number) {
            *held = None;
        }
    }
}

/// Whether a connection that answered so is of no use any more: broken, silent, or not the master's.
fn breaks(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(
                ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown | ServerErrorKind::BusyLoading
            )
        )
}

async fn bounded<T>(work: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    match tokio::time::timeout(CALL_TIMEOUT, work).await {
        Ok(answer) => answer,
        Err(_) => Err((ErrorKind::Io, "no answer in time").into()),
    }
}
