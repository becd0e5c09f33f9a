//! Connections to the servers: made when first used, held in lanes, and shared by all calls.
//!
//! Invariants
//! - A call uses a clone of a multiplexed handle: no checkout, no extra command, no lock across an await.
//! - Each scheduler has a connection of its own, so that neither request nor answer wakes another thread.
//! - Every wait is bounded. A connection that failed is replaced by a new one; while the server is away, one call at a
//!   time tries and the others are told at once.
//! - A cluster's connection, which leads to all its nodes, stays in use until another took its place: one node that is silent
//!   does not take the sessions of the others with it.
//! - No connection to a server that says it is a replica is used, and all are let go when one of them says so.
//! - Only reads are repeated, once, and only when their connection broke.
//! - Changed settings are used by new connections. One in use stays until one of the new kind takes its place, so
//!   that settings that do not work yet break nothing that does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use chassis::secret::Reloading;
use deadpool_redis::redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use deadpool_redis::redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, Role, Value};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::watch;

use crate::store::url::RedisSettings;

use super::answers::{Consequence, consequence};
use super::lanes::{Lane, Lanes, PooledConnection};
use super::nodes::Node;
use super::source::{SetupError, Source, Unsaid, Wire, not_the_master, verify};

/// Longest wait for everything one call does, connecting again included.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(3_000);

/// Longest a connection may take that nobody waits for: that of a cluster takes two rounds of connecting.
const REPLACE_TIMEOUT: Duration = Duration::from_millis(6_000);

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
    /// For work that goes on when its caller does not wait.
    this: Weak<Self>,
}

impl Connections {
    /// Prepares them; connects when first used.
    pub(super) fn new(settings: &RedisSettings) -> Result<Arc<Self>, SetupError> {
        let lanes = Arc::new(Lanes::new());
        let source = Reloading::new(Source::new(settings, &lanes)?);
        Ok(Arc::new_cyclic(|this| Self {
            source,
            generation: AtomicUsize::new(0),
            lanes,
            made: AtomicUsize::new(0),
            this: Weak::clone(this),
        }))
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
                Consequence::LetGo if matches!(wire, Wire::Cluster(_)) => self.replace_later(lane, number),
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
        let mut question = Pipeline::new();
        question.add_command(command.clone()).cmd("ROLE").ignore_errors();
        let ask = || {
            bounded(self.on_lane(async |wire| {
                let (answer, role): (Value, Value) = question.query_async(wire).await?;
                Ok((answer.extract_error()?, role))
            }))
        };
        let (answer, role) = match ask().await {
            Err(error) if consequence(&error) == Consequence::LetGo && !error.is_timeout() => ask().await?,
            answer => answer?,
        };
        match Role::from_redis_value(role) {
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

    /// Asks on every connection whether its server is a replica by now: where one address leads to several servers in turn, not
    /// all may lead to the same.
    pub(super) async fn verify_all(&self) {
        let verified = self.lanes.all().into_iter().map(|lane| async move {
            let Some(found) = lane.wire() else { return };
            if let (Wire::Server(connection), number) = found.shared()
                && let Err(error) = bounded(verify(connection, Unsaid::Believed)).await
                && !error.is_timeout()
            {
                lane.let_go(number);
            }
        });
        join_all(verified).await;
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

    /// Makes another connection in place of `number`, which is used until then.
    fn replace_later(&self, lane: Arc<Lane>, number: usize) {
        let Some(this) = self.this.upgrade() else { return };
        tokio::spawn(async move {
            let Ok(mut failed) = lane.connecting.try_lock() else {
                return;
            };
            let is_replaced = lane.wire().is_none_or(|found| found.number != number);
            if is_replaced
                || failed
                    .as_ref()
                    .is_some_and(|(at, _)| at.elapsed() < CONNECT_PAUSE)
            {
                return;
            }
            if let Err(error) = this.make(&lane, &mut failed).await {
                tracing::debug!(%error, "the connection in use cannot be replaced yet");
            }
        });
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
        match within(REPLACE_TIMEOUT, source.pooled().boxed()).await {
            Ok((wire, from_pool)) => {
                *failed = None;
                let number = self.made.fetch_add(1, Ordering::Relaxed);
                lane.hold(PooledConnection {
                    wire: wire.clone(),
                    number,
                    generation,
                    _source: Arc::clone(&source),
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
    within(CALL_TIMEOUT, work).await
}

async fn within<T>(bound: Duration, work: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    match tokio::time::timeout(bound, work).await {
        Ok(answer) => answer,
        Err(_) => Err((ErrorKind::Io, "no answer in time").into()),
    }
}
