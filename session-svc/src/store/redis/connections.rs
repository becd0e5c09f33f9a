//! Connections to the servers: made and checked by the pool, held here, and shared by all calls.
//!
//! Invariants
//! - A call uses a clone of a multiplexed handle: no checkout, no extra command, no lock across an await.
//! - Each scheduler has a connection of its own, so that neither request nor answer wakes another thread.
//! - Every wait is bounded. A connection that failed is given back to the pool, which checks or replaces it;
//!   while the server is away, one call at a time tries and the others are told at once.
//! - Only reads are repeated, once, and only when their connection broke.
//! - Changed settings are used by new connections. One in use stays until one of the new kind takes its place, so
//!   that settings that do not work yet break nothing that does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use chassis::runtime::PerScheduler;
use chassis::secret::Reloading;
use deadpool_redis::redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use deadpool_redis::redis::{
    Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind, Value,
};
use futures_util::FutureExt as _;
use tokio::sync::Mutex;

use crate::store::url::RedisSettings;

use super::nodes::Node;
use super::source::{SetupError, Source, Wire};

/// Longest wait for everything one call does, connecting again included.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(3_000);

/// After a failed attempt to connect nobody tries again for this long.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// After a failed attempt with changed settings the connection in use stays for this long.
const RENEW_PAUSE: Duration = Duration::from_secs(2);

/// A connection in use, and the pool's hold on it.
struct Held {
    wire: Wire,
    number: usize,
    /// Which settings it was made with.
    generation: usize,
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
    source: Reloading<Source>,
    /// How often the settings changed.
    generation: AtomicUsize,
    lanes: PerScheduler<Lane>,
    made: AtomicUsize,
}

impl Connections {
    /// Prepares them; connects when first used.
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, SetupError> {
        Ok(Self {
            source: Reloading::new(Source::new(settings)?),
            generation: AtomicUsize::new(0),
            lanes: PerScheduler::new(Lane::default),
            made: AtomicUsize::new(0),
        })
    }

    /// Connects as `settings` say from now on.
    pub(super) fn change(&self, settings: &RedisSettings) -> Result<(), SetupError> {
        self.source.store(Source::new(settings)?);
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
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

    /// Sends a command that may be repeated to one server.
    pub(super) async fn on_node(&self, node: &Node, command: &Cmd) -> RedisResult<Value> {
        let routing = match node {
            Node::Only => None,
            Node::Master { host, port } => Some(SingleNodeRoutingInfo::ByAddress {
                host: host.clone(),
                port: *port,
            }),
        };
        bounded(self.on_lane(async |wire| {
            match (wire, routing) {
                (Wire::Cluster(cluster), Some(routing)) => {
                    cluster
                        .route_command(command.clone(), RoutingInfo::SingleNode(routing))
                        .await
                }
                (wire, _) => command.query_async(wire).await,
            }
        }))
        .await
    }

    async fn on_lane<T>(&self, send: impl AsyncFnOnce(&mut Wire) -> RedisResult<T>) -> RedisResult<T> {
        let lane = self.lanes.here();
        let (mut wire, number) = match lane.wire() {
            Some(found) if found.generation == self.generation.load(Ordering::Acquire) => found.shared(),
            Some(found) => self.renew(&lane, found.shared()).await,
            None => self.connect(&lane).await?,
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
            return Ok(found.shared());
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < CONNECT_PAUSE
        {
            return Err(error.clone());
        }
        self.make(lane, &mut failed).await
    }

    /// A connection with the settings of now; the one in use while there is none yet.
    async fn renew(&self, lane: &Lane, in_use: (Wire, usize)) -> (Wire, usize) {
        let Ok(mut failed) = lane.connecting.try_lock() else {
            return in_use;
        };
        if failed.as_ref().is_some_and(|(at, _)| at.elapsed() < RENEW_PAUSE) {
            return in_use;
        }
        match self.make(lane, &mut failed).await {
            Ok(made) => made,
            Err(error) => {
                tracing::warn!(%error, "the store does not take its changed settings yet: the connection in use stays");
                in_use
            }
        }
    }

    async fn make(
        &self,
        lane: &Lane,
        failed: &mut Option<(Instant, RedisError)>,
    ) -> RedisResult<(Wire, usize)> {
        // Read first: settings that change now make another connection soon.
        let generation = self.generation.load(Ordering::Acquire);
        let source = self.source.load();
        // Boxed: the client's futures nest deep, and connecting is rare.
        match bounded(source.pooled().boxed()).await {
            Ok((wire, from_pool)) => {
                *failed = None;
                let number = self.made.fetch_add(1, Ordering::Relaxed);
                let held = Held {
                    wire: wire.clone(),
                    number,
                    generation,
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
        let source = self.source.load();
        bounded(source.apart(answer_timeout).boxed()).await
    }
}

/// A connection found in use.
struct Found {
    wire: Wire,
    number: usize,
    generation: usize,
}

impl Found {
    fn shared(self) -> (Wire, usize) {
        (self.wire, self.number)
    }
}

impl Lane {
    fn wire(&self) -> Option<Found> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|held| Found {
            wire: held.wire.clone(),
            number: held.number,
            generation: held.generation,
        })
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
