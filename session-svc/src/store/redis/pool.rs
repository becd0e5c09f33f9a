//! The connections of one worker. A pool (deadpool) makes, checks and recycles them.
//!
//! Invariants
//! - A call takes the pool's only object, clones its multiplexed handle and returns the object. Only then does
//!   it send its command (docs/decisions/redis-connections.md).
//! - Each worker makes the object that it uses, so that neither request nor answer wakes another thread.
//! - Every wait is bounded. While the server is away, one call tries to connect; others fail at once.
//! - If an object's server failed, became a replica or is no longer the Sentinels' master, the pool replaces
//!   the object. An idle object is checked before its next use: a load balancer drops idle connections
//!   silently, and writes are not retried.
//! - A cluster connection, which leads to all nodes, stays in use until another connection replaces it: one
//!   silent node must not make the sessions on other nodes unavailable.
//! - Only reads are retried, once, and only if their connection broke or brought no answer.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool::managed::{self, Metrics, Pool, PoolError, RecycleResult};
use futures_util::FutureExt as _;
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, Value, from_redis_value_ref};
use tokio::sync::watch;
use tokio::time::error::Elapsed;
use tokio::time::{timeout, timeout_at};

use super::answers::{ConnectionAction, consequence};
use super::partitions::slot_number;
use super::source::{
    ANSWER_TIMEOUT, ConnectionSource, SetupError, SharedConnection, is_master, not_the_master,
};
use super::span;
use crate::store::url::ServerAddress;

/// Longest duration of one call, reconnecting included.
const CALL_TIMEOUT: Duration = Duration::from_millis(3_000);

/// Longest duration of connecting to all nodes of a cluster again, some of them silent.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed attempt to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// A connection whose last check is older is checked before its next use. This limits how long a former master
/// serves reads: endings must be visible within a second.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// The source of new connections. Changed settings replace it.
pub(super) type Sources = watch::Receiver<Arc<ConnectionSource>>;

/// A connection, and what is needed to check it.
pub(super) struct CheckedConnection {
    pub(super) wire: SharedConnection,
    source: Arc<ConnectionSource>,
    /// Its server, if Sentinels or the slots of a cluster named it.
    master: Option<ServerAddress>,
    checked_at: Instant,
    /// How many connections had broken at that time.
    breaks: u64,
    is_broken: Arc<AtomicBool>,
}

impl CheckedConnection {
    /// Connects to this server, or to the one that the source names.
    async fn make(
        source: Arc<ConnectionSource>,
        server: Option<ServerAddress>,
        answer_timeout: Duration,
    ) -> RedisResult<Self> {
        let (checked_at, breaks) = (Instant::now(), source.breaks());
        let (wire, master) = match server {
            Some(server) => (source.connect_to(&server, answer_timeout).await?, Some(server)),
            None => source.connect(answer_timeout).await?,
        };
        Ok(Self {
            wire,
            source,
            master,
            checked_at,
            breaks,
            is_broken: Arc::default(),
        })
    }

    /// Checks that the server is still the master. Asks the server if the last check is old.
    pub(super) async fn check(&mut self) -> RedisResult<()> {
        let SharedConnection::Server(server) = &self.wire else {
            return Ok(());
        };
        // A node of a cluster answers MOVED once it is no longer a master.
        if self.source.is_cluster() {
            return Ok(());
        }
        if self.is_broken.load(Ordering::Relaxed) || !self.source.is_used(self.master.as_ref()) {
            return Err(not_the_master());
        }
        let breaks = self.source.breaks();
        if self.checked_at.elapsed() >= CHECK_EVERY || self.breaks != breaks {
            let checked_at = Instant::now();
            if !is_master(server.clone()).await? {
                tracing::warn!("the store's server is now a replica: its connection is closed");
                self.source.look();
                return Err(not_the_master());
            }
            (self.checked_at, self.breaks) = (checked_at, breaks);
        }
        Ok(())
    }

    /// Returns once the Sentinels no longer name the server.
    pub(super) async fn wait_until_replaced(&self) {
        self.source.wait_until_replaced(self.master.as_ref()).await;
    }
}

/// Makes and checks the connections of a pool.
pub(super) struct ConnectionManager {
    sources: Sources,
    /// The time and error of the last failed attempt to connect.
    failed: Mutex<Option<(Instant, RedisError)>>,
}

impl ConnectionManager {
    fn failed(&self) -> std::sync::MutexGuard<'_, Option<(Instant, RedisError)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn source(&self) -> Arc<ConnectionSource> {
        Arc::clone(&self.sources.borrow())
    }
}

impl managed::Manager for ConnectionManager {
    type Type = CheckedConnection;
    type Error = RedisError;

    async fn create(&self) -> RedisResult<CheckedConnection> {
        if let Some((at, error)) = &*self.failed()
            && at.elapsed() < CONNECT_PAUSE
        {
            return Err(error.clone());
        }
        // Boxed: the client's futures nest deep, and connecting is rare.
        let made = CheckedConnection::make(self.source(), None, ANSWER_TIMEOUT)
            .boxed()
            .await;
        *self.failed() = made.as_ref().err().map(|error| (Instant::now(), error.clone()));
        made
    }

    async fn recycle(&self, used: &mut CheckedConnection, _: &Metrics) -> RecycleResult<RedisError> {
        if !Arc::ptr_eq(&used.source, &self.sources.borrow()) {
            return Err(managed::RecycleError::message("the settings changed"));
        }
        Ok(used.check().await?)
    }
}

/// The connection of one worker; clones share it.
#[derive(Clone)]
pub(super) struct WorkerConnection(Pool<ConnectionManager>);

impl WorkerConnection {
    /// Prepares a connection, which connects when first used.
    pub(super) fn new(sources: Sources) -> Result<Self, SetupError> {
        let manager = ConnectionManager {
            sources,
            failed: Mutex::default(),
        };
        // One connection carries all calls of a worker. Each call bounds its waits itself.
        Ok(Self(Pool::builder(manager).max_size(1).build()?))
    }

    /// A connection for another worker.
    pub(super) fn another(&self) -> Result<Self, SetupError> {
        Self::new(self.0.manager().sources.clone())
    }

    /// Sends a command that only reads. Retries it once on a new connection if the first one broke.
    pub(super) async fn read<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        match self.once(command).await {
            Err(error) if consequence(&error) == ConnectionAction::Close => self.once(command).await,
            answer => answer,
        }
    }

    /// Sends a command once.
    pub(super) async fn once<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        self.once_by(command, None).await
    }

    /// Sends a command once; `script` is the script that the command runs.
    pub(super) async fn once_by<T: FromRedisValue>(
        &self,
        command: &Cmd,
        script: Option<&'static str>,
    ) -> RedisResult<T> {
        // Pinned here: each layer around it would copy the whole future.
        let answer = pin!(self.send(async |wire| wire.ask(command).await));
        span::traced(command, script, answer).await
    }

    /// Sends several commands once, in one round trip.
    pub(super) async fn together<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        self.send(async |wire| wire.ask_all(pipeline).await).await
    }

    /// Reports that a connection broke. Other workers check theirs before their next use.
    pub(super) fn report_break(&self) {
        self.0.manager().source().report_break();
    }

    /// A separate connection for a listener, to the server of this key. An answer may take `answer_timeout`.
    pub(super) async fn listener(
        &self,
        key: &[u8],
        answer_timeout: Duration,
    ) -> RedisResult<CheckedConnection> {
        let source = self.0.manager().source();
        let making = async {
            let owner = match source.is_cluster() {
                true => Some(self.owner(key).await?),
                false => None,
            };
            CheckedConnection::make(source, owner, answer_timeout).await
        };
        let made = timeout(CALL_TIMEOUT, making.boxed()).await;
        made.map_err(late)?
    }

    /// The cluster's master for the slot of this key.
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

    async fn send<T>(
        &self,
        send: impl AsyncFnOnce(&mut SharedConnection) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let deadline = tokio::time::Instant::now() + CALL_TIMEOUT;
        let (mut wire, is_broken) = {
            let used = timeout_at(deadline, self.0.get()).await.map_err(late)?;
            let used = used.map_err(failure)?;
            (used.wire.clone(), Arc::clone(&used.is_broken))
        };
        // A connection without an answer counts as broken: a cluster's client can stall while all nodes are healthy.
        let answer = timeout_at(deadline, send(&mut wire)).await;
        let answer = answer.unwrap_or_else(|elapsed| Err(late(elapsed)));
        let consequence = answer.as_ref().err().map(consequence);
        if consequence.is_some_and(|consequence| consequence != ConnectionAction::Keep) {
            self.0.manager().source().look();
        }
        if consequence == Some(ConnectionAction::Close) && !is_broken.swap(true, Ordering::Relaxed) {
            self.report_break();
            if matches!(wire, SharedConnection::Cluster(_)) {
                tokio::spawn(self.clone().replace(is_broken));
            }
        }
        answer
    }

    /// Makes a new connection to a cluster. The broken one stays in use until then.
    async fn replace(self, is_broken: Arc<AtomicBool>) {
        let replacing = async {
            let source = self.0.manager().source();
            let making = CheckedConnection::make(source, None, ANSWER_TIMEOUT).boxed();
            let made = timeout(REPLACE_TIMEOUT, making).await.map_err(late)??;
            let used = timeout(CALL_TIMEOUT, self.0.get()).await.map_err(late)?;
            *used.map_err(failure)? = made;
            RedisResult::Ok(())
        };
        if let Err(error) = replacing.await {
            is_broken.store(false, Ordering::Relaxed);
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the connection in use cannot be replaced yet"
            );
        }
    }
}

fn failure(error: PoolError<RedisError>) -> RedisError {
    match error {
        PoolError::Backend(error) => error,
        _ => (ErrorKind::Io, "the pool has no connection").into(),
    }
}

fn late(_: Elapsed) -> RedisError {
    (ErrorKind::Io, "no answer in time").into()
}
