//! The connection of one worker: made when first used, shared by all its calls, replaced when it fails.
//!
//! Invariants
//! - A call uses a clone of a multiplexed handle: no checkout, no extra command, no lock across an await
//!   (docs/decisions/redis-connections.md).
//! - It is made on the worker that uses it, so that neither request nor answer wakes another thread.
//! - Every wait is bounded. A connection that failed is replaced by a new one; while the server is away, one call at a
//!   time tries and the others fail at once.
//! - A cluster's connection, which leads to all its nodes, stays in use until another replaced it: one node that is silent
//!   does not take the sessions of the others with it.
//! - No connection to a server that says it is a replica is used, and those of all workers are let go when one of them says so.
//! - Only reads are repeated, once, and only when their connection broke or brought no answer: a load balancer forgets idle
//!   connections without a word to either side.
//! - Changed settings are used by new connections. One in use stays until one of the new kind replaces it, so
//!   that settings that do not work yet break nothing that does.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, Value, from_redis_value_ref};
use tokio::sync::{Mutex, watch};

use super::answers::{Consequence, consequence};
use super::connections::Connections;
use super::partitions::slot_number;
use super::source::{ANSWER_TIMEOUT, ConnectionSource, Unsaid, Wire, is_master, not_the_master};
use super::span::{self, Named};
use crate::store::url::ServerAddress;

/// Longest wait for everything one call does, connecting again included.
const CALL_TIMEOUT: Duration = Duration::from_millis(3_000);

/// Longest a connection may take that nobody waits for: that of a cluster takes two rounds of connecting.
const REPLACE_TIMEOUT: Duration = Duration::from_millis(6_000);

/// After a failed attempt to connect nobody tries again for this long.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// After a failed attempt with changed settings the connection in use stays for this long.
const RENEW_PAUSE: Duration = Duration::from_secs(2);

/// How often a connection's server is queried for its role: where one address leads to several servers in turn, not all connections
/// may lead to the same. With the longest wait for an answer to a read, a server that was a master is read for less
/// than the second in which endings are seen. Where one connection breaks all are verified at once: a write that is not repeated
/// is not to meet one that died while idle.
const VERIFY_EVERY: Duration = Duration::from_millis(250);

/// The connection of one worker; clones share it.
#[derive(Clone)]
pub(super) struct WorkerConnection(Arc<ConnectionState>);

struct ConnectionState {
    connections: Arc<Connections>,
    in_use: RwLock<Option<Arc<Established>>>,
    /// Held while connecting: when and why that failed last.
    connecting: Mutex<Option<(Instant, RedisError)>>,
}

/// A connection that was made.
struct Established {
    wire: Wire,
    /// Changes when other settings are to be used.
    settings: watch::Receiver<Arc<ConnectionSource>>,
    /// Changes when all are let go.
    let_go: watch::Receiver<()>,
    /// What made it: who follows its master does so as long as it is in use.
    _source: Arc<ConnectionSource>,
}

impl Established {
    fn is_outdated(&self) -> bool {
        self.settings.has_changed().unwrap_or(true)
    }

    fn is_let_go(&self) -> bool {
        self.let_go.has_changed().unwrap_or(true)
    }
}

impl WorkerConnection {
    /// Prepares one; connects when first used.
    pub(super) fn new(connections: &Arc<Connections>) -> Self {
        Self(Arc::new(ConnectionState {
            connections: Arc::clone(connections),
            in_use: RwLock::default(),
            connecting: Mutex::default(),
        }))
    }

    /// Another one, for another worker.
    pub(super) fn another(&self) -> Self {
        Self::new(&self.0.connections)
    }

    /// Sends a command that may be repeated.
    pub(super) async fn read<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        self.read_by(command, None).await
    }

    /// Sends a command once.
    pub(super) async fn once<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        self.once_by(command, None).await
    }

    /// Sends a command that may be repeated, which runs this script.
    pub(super) async fn read_by<T: FromRedisValue>(
        &self,
        command: &Cmd,
        script: Option<&'static str>,
    ) -> RedisResult<T> {
        match self.once_by(command, script).await {
            Err(error) if consequence(&error) == Consequence::LetGo => self.once_by(command, script).await,
            answer => answer,
        }
    }

    /// Sends a command once, which runs this script.
    pub(super) async fn once_by<T: FromRedisValue>(
        &self,
        command: &Cmd,
        script: Option<&'static str>,
    ) -> RedisResult<T> {
        let answer = bounded(self.send(async |wire| command.query_async(wire).await));
        span::traced(|| Named::by(command, script), answer).await
    }

    /// Sends several commands once, in one round trip.
    pub(super) async fn together<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        let answer = bounded(self.send(async |wire| pipeline.query_async(wire).await));
        span::traced(|| Named::batch(pipeline.len()), answer).await
    }

    /// Says that a listener's connection broke: those of the workers may have, too.
    pub(super) fn listener_broke(&self) {
        self.0.connections.verify_all();
    }

    /// A connection apart for a listener that waits for up to `answer_timeout`, to the server that has this key; and the signal that it
    /// is to be let go.
    pub(super) async fn listener(
        &self,
        key: &[u8],
        answer_timeout: Duration,
    ) -> RedisResult<(Wire, watch::Receiver<()>)> {
        let let_go = self.0.connections.let_go.subscribe();
        let source = Arc::clone(&self.0.connections.source.borrow());
        let wire = bounded(async {
            if let ConnectionSource::Cluster(_) = *source {
                let owner = self.owner(key).await?;
                source.connect_to_node(&owner, answer_timeout).await
            } else {
                source.connect(answer_timeout).await
            }
        });
        Ok((wire.boxed().await?, let_go))
    }

    /// The master of a cluster that has the slot of this key.
    async fn owner(&self, key: &[u8]) -> RedisResult<ServerAddress> {
        let slot = slot_number(key);
        let ranges: Vec<Vec<Value>> = self.read(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        for range in ranges {
            // First slot, last slot, master (host, port, …), replicas.
            let [first, last, Value::Array(master), ..] = range.as_slice() else {
                continue;
            };
            let (first, last): (u16, u16) = (from_redis_value_ref(first)?, from_redis_value_ref(last)?);
            if let [host, port, ..] = master.as_slice()
                && (first..=last).contains(&slot)
            {
                return Ok(ServerAddress {
                    host: from_redis_value_ref(host)?,
                    port: from_redis_value_ref(port)?,
                });
            }
        }
        Err((ErrorKind::Io, "no node has the slot").into())
    }

    async fn send<T>(&self, send: impl AsyncFnOnce(&mut Wire) -> RedisResult<T>) -> RedisResult<T> {
        let used = match self.0.in_use() {
            Some(found) if !found.is_outdated() => found,
            Some(found) => self.renew(found).await,
            None => self.connect().await?,
        };
        let mut wire = used.wire.clone();
        let answer = send(&mut wire).await;
        if let Err(error) = &answer {
            match consequence(error) {
                Consequence::Keep => {}
                Consequence::Look => self.0.connections.look(),
                Consequence::LetGo if matches!(wire, Wire::Cluster(_)) => self.replace_later(used),
                Consequence::LetGo => {
                    self.0.let_go(&used);
                    self.0.connections.look();
                }
            }
        }
        answer
    }

    async fn connect(&self) -> RedisResult<Arc<Established>> {
        let mut failed = self.0.connecting.lock().await;
        if let Some(found) = self.0.in_use() {
            return Ok(found);
        }
        match failed_within(&failed, CONNECT_PAUSE) {
            Some(error) => Err(error.clone()),
            None => self.make(&mut failed).await,
        }
    }

    /// A connection with the settings of now; the one in use while there is none yet.
    async fn renew(&self, in_use: Arc<Established>) -> Arc<Established> {
        let Ok(mut failed) = self.0.connecting.try_lock() else {
            return in_use;
        };
        if failed_within(&failed, RENEW_PAUSE).is_some() {
            return in_use;
        }
        match self.make(&mut failed).await {
            Ok(made) => made,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the store does not take its changed settings yet: the connection in use stays"
                );
                in_use
            }
        }
    }

    /// Makes another connection to replace `broken`, which is used until then.
    fn replace_later(&self, broken: Arc<Established>) {
        let this = self.clone();
        tokio::spawn(async move {
            let Ok(mut failed) = this.0.connecting.try_lock() else {
                return;
            };
            let is_in_use = this.0.in_use().is_some_and(|used| Arc::ptr_eq(&used, &broken));
            if !is_in_use || failed_within(&failed, CONNECT_PAUSE).is_some() {
                return;
            }
            if let Err(error) = this.make(&mut failed).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the connection in use cannot be replaced yet"
                );
            }
        });
    }

    async fn make(&self, failed: &mut Option<(Instant, RedisError)>) -> RedisResult<Arc<Established>> {
        let connections = &self.0.connections;
        // Subscribed first: what changes from here on is seen.
        let (let_go, settings) = (connections.let_go.subscribe(), connections.source.subscribe());
        let source = Arc::clone(&settings.borrow());
        // Boxed: the client's futures nest deep, and connecting is rare.
        match within(REPLACE_TIMEOUT, source.connect(ANSWER_TIMEOUT).boxed()).await {
            Ok(wire) => {
                *failed = None;
                let made = Arc::new(Established {
                    wire,
                    settings,
                    let_go,
                    _source: source,
                });
                if made.is_let_go() {
                    return Err(not_the_master());
                }
                self.0.hold(&made);
                Ok(made)
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

impl ConnectionState {
    fn in_use(&self) -> Option<Arc<Established>> {
        let in_use = self.in_use.read().unwrap_or_else(PoisonError::into_inner);
        in_use.as_ref().filter(|used| !used.is_let_go()).map(Arc::clone)
    }

    /// Uses it from now on; one that leads to a single server is verified as long as it is used.
    fn hold(self: &Arc<Self>, made: &Arc<Established>) {
        *self.in_use.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(made));
        if matches!(made.wire, Wire::Server(_)) {
            let (let_go, broken) = (made.let_go.clone(), self.connections.subscribe_broken());
            tokio::spawn(keep_verifying(
                Arc::downgrade(self),
                Arc::downgrade(made),
                let_go,
                broken,
            ));
        }
    }

    /// Uses it no more, if it was not replaced meanwhile.
    fn let_go(&self, old: &Arc<Established>) {
        let mut in_use = self.in_use.write().unwrap_or_else(PoisonError::into_inner);
        if in_use.take_if(|used| Arc::ptr_eq(used, old)).is_some() {
            self.connections.verify_all();
        }
    }

    /// Asks whether the server is a master still. If it is none, the connections of all workers are let go.
    async fn verify(&self, used: &Arc<Established>) {
        let Wire::Server(server) = &used.wire else { return };
        match bounded(is_master(server.clone(), Unsaid::Believed)).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!("the store's server is a replica by now: its connections are let go");
                self.connections.let_go.send_replace(());
                self.connections.look();
            }
            // An idle connection that a load balancer forgot says so here, before a write meets it.
            Err(_) => self.let_go(used),
        }
    }
}

/// Verifies a connection until it is used no more; closes it at once when all are let go.
async fn keep_verifying(
    of: Weak<ConnectionState>,
    used: Weak<Established>,
    mut let_go: watch::Receiver<()>,
    mut broken: watch::Receiver<()>,
) {
    loop {
        let is_let_go = tokio::select! {
            _ = let_go.changed() => true,
            _ = broken.changed() => false,
            () = tokio::time::sleep(VERIFY_EVERY) => false,
        };
        let (Some(of), Some(used)) = (of.upgrade(), used.upgrade()) else {
            return;
        };
        if is_let_go {
            of.let_go(&used);
            return;
        }
        of.verify(&used).await;
    }
}

/// Why connecting failed, if it did so a short time ago.
fn failed_within(failed: &Option<(Instant, RedisError)>, pause: Duration) -> Option<&RedisError> {
    let recent = failed.as_ref().filter(|(at, _)| at.elapsed() < pause);
    recent.map(|(_, error)| error)
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
