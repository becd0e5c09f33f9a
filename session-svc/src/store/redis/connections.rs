//! Connections to the servers: made when first used, held in lanes, and shared by all calls.
//!
//! Invariants
//! - A call uses a clone of a multiplexed handle: no checkout, no extra command, no lock across an await.
//! - Each scheduler has a connection of its own, so that neither request nor answer wakes another thread.
//! - Every wait is bounded. A connection that failed is replaced by a new one; while the server is away, one call at a
//!   time tries and the others are told at once.
//! - No connection to a server that says it is a replica is used, and all are let go when one of them says so.
//! - Only reads are repeated, once, and only when their connection broke.
//! - Changed settings are used by new connections. One in use stays until one of the new kind takes its place, so
//!   that settings that do not work yet break nothing that does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chassis::secret::Reloading;
use deadpool_redis::redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use deadpool_redis::redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, Role, Value};
use futures_util::FutureExt as _;
use tokio::sync::watch;

use crate::store::url::RedisSettings;

use super::answers::{Consequence, consequence};
use super::lanes::{Held, Lane, Lanes};
use super::nodes::Node;
use super::source::{SetupError, Source, Wire, not_the_master};

/// Longest wait for everything one call does, connecting again included.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(3_000);

/// After a failed attempt to connect nobody tries again for this long.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// After a failed attempt with changed settings the connection in use stays for this long.
const RENEW_PAUSE: Duration = Duration::from_secs(2);

/// The connections of one store.
pub(super) struct Connections {
    source: Reloading<Source>,
    /// How often the settings changed.
    generation: AtomicUsize,
    lanes: Arc<Lanes>,
    made: AtomicUsize,
}

impl Connections {
    /// Prepares them; connects when first used.
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, SetupError> {
        let lanes = Arc::new(Lanes::new());
        Ok(Self {
            source: Reloading::new(Source::new(settings, &lanes)?),
            generation: AtomicUsize::new(0),
            lanes,
            made: AtomicUsize::new(0),
        })
    }

    /// Connects as `settings` say from now on.
    pub(super) fn change(&self, settings: &RedisSettings) -> Result<(), SetupError> {
        self.source.store(Source::new(settings, &self.lanes)?);
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Sends a command that may be repeated.
    pub(super) async fn read<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        match self.once(command).await {
            Err(error) if consequence(&error) == Consequence::LetGo && !error.is_timeout() => {
                self.once(command).await
            }
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
        if let Err(error) = &answer {
            match consequence(error) {
                Consequence::Keep => {}
                Consequence::Look => self.source.load().look(),
                Consequence::LetGo => {
                    lane.let_go(number);
                    self.source.load().look();
                }
            }
        }
        answer
    }

    /// Asks a server for something, and for its role with it. All connections are let go if it is a replica by now; a
    /// cluster is asked for the first alone, as its servers send calls on to the master themselves.
    pub(super) async fn with_role<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let source = self.source.load();
        if source.is_cluster() {
            return self.read(command).await;
        }
        let times = self.lanes.times();
        let mut question = Pipeline::new();
        question.add_command(command.clone()).cmd("ROLE").ignore_errors();
        let ask = || {
            bounded(self.on_lane(async |wire| {
                let asked = Instant::now();
                let (answer, role): (Value, Value) = question.query_async(wire).await?;
                Ok((answer.extract_error()?, role, asked))
            }))
        };
        let (answer, role, asked) = match ask().await {
            Err(error) if consequence(&error) == Consequence::LetGo && !error.is_timeout() => ask().await?,
            answer => answer?,
        };
        match Role::from_redis_value(role) {
            Ok(Role::Primary { replicas, .. }) if times == self.lanes.times() => {
                source.had(replicas.len(), asked)
            }
            // One that may not be asked is believed: what it refuses to write will tell.
            Ok(Role::Primary { .. }) | Err(_) => {}
            Ok(_) => {
                tracing::warn!("the store's server is a replica by now: its connections are let go");
                self.lanes.let_go_all();
                source.look();
                return Err(not_the_master());
            }
        }
        Ok(T::from_redis_value(answer)?)
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
        let times = self.lanes.times();
        let source = self.source.load();
        // Boxed: the client's futures nest deep, and connecting is rare.
        match bounded(source.pooled().boxed()).await {
            Ok((wire, from_pool)) => {
                *failed = None;
                let number = self.made.fetch_add(1, Ordering::Relaxed);
                lane.hold(Held {
                    wire: wire.clone(),
                    number,
                    generation,
                    from_pool,
                });
                if times != self.lanes.times() {
                    lane.let_go(number);
                    return Err(not_the_master());
                }
                Ok((wire, number))
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// A connection of its own for a listener that waits for up to `answer_timeout`, and what tells that it is to be let go.
    pub(super) async fn listener(
        &self,
        answer_timeout: Duration,
    ) -> RedisResult<(Wire, watch::Receiver<usize>)> {
        let let_go = self.lanes.times_let_go();
        let source = self.source.load();
        let wire = bounded(source.apart(answer_timeout).boxed()).await?;
        Ok((wire, let_go))
    }
}

async fn bounded<T>(work: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    match tokio::time::timeout(CALL_TIMEOUT, work).await {
        Ok(answer) => answer,
        Err(_) => Err((ErrorKind::Io, "no answer in time").into()),
    }
}
