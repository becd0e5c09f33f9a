//! Every order in which two actors can take their steps at the store and at the provider.
//!
//! An actor stops before each step until its turn. Orders run one at a time, on one thread. The order chooses
//! the next actor; where it has no entry, the first waiting actor goes. The choices left open give the next
//! order, until none is left.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use session_svc::store::{
    IndexEntry, Inserted, KeyValueStore, Lease, Listing, Loaded, Name, Record, Replaced, StoreError,
    StoreUpdate,
};
use tokio::sync::{mpsc, oneshot};

/// After this many checks without a report, no actor can move: each check lets every ready task run, and no
/// chain of tasks is this long.
const QUIET_LOOKS: usize = 12;

/// How long actors that wait only for time get at once, and how often.
const NAP: Duration = Duration::from_secs(1);
const NAPS_MAX: usize = 5;

/// More orders than two actors of these lengths have.
const ORDERS_MAX: usize = 20_000;

enum Report {
    Waits(usize, oneshot::Sender<()>),
    Over(usize),
}

/// How an actor waits for its turn.
#[derive(Clone)]
pub(crate) struct Turn {
    actor: usize,
    reports: mpsc::UnboundedSender<Report>,
    taken: Arc<AtomicUsize>,
}

impl Turn {
    fn new(actor: usize, reports: &mpsc::UnboundedSender<Report>) -> Self {
        Self {
            actor,
            reports: reports.clone(),
            taken: Arc::default(),
        }
    }

    /// The turns of an actor without a director.
    pub(crate) fn free() -> Self {
        Self::new(0, &mpsc::unbounded_channel().0)
    }

    /// How many steps the actor took.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    /// Waits for this actor's turn; returns at once without a director.
    pub(crate) async fn wait(&self) {
        self.taken.fetch_add(1, Ordering::SeqCst);
        let (go, gone) = oneshot::channel();
        if self.reports.send(Report::Waits(self.actor, go)).is_ok() {
            let _ = gone.await;
        }
    }
}

/// Directs two actors through one order after another.
pub(crate) struct Turns {
    order: Vec<usize>,
    run: usize,
}

/// One run: turns for both actors, and their reports.
pub(crate) struct Run {
    reports: mpsc::UnboundedReceiver<Report>,
    pub(crate) turns: [Turn; 2],
}

#[derive(Default)]
struct Actor {
    waits: VecDeque<oneshot::Sender<()>>,
    over: bool,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            order: Vec::new(),
            run: 0,
        }
    }

    /// How many orders were run.
    pub(crate) fn count(&self) -> usize {
        self.run
    }

    /// The next run.
    pub(crate) fn begin(&mut self) -> Run {
        let (sender, reports) = mpsc::unbounded_channel();
        self.run += 1;
        assert!(self.run <= ORDERS_MAX, "there is no end to it");
        Run {
            turns: [Turn::new(0, &sender), Turn::new(1, &sender)],
            reports,
        }
    }

    /// Runs both actors in the next order. Returns whether there is another order.
    pub(crate) async fn direct(&mut self, run: Run, actors: [BoxFuture<'static, ()>; 2]) -> bool {
        let Run { reports, turns } = run;
        for (actor, turn) in actors.into_iter().zip(&turns) {
            let turn = turn.clone();
            tokio::spawn(async move {
                actor.await;
                let _ = turn.reports.send(Report::Over(turn.actor));
            });
        }
        let directing = tokio::spawn(directed(self.order.clone(), reports));
        let went = directing.await.expect("nobody is stuck");
        let Some(last_open) = went.iter().rposition(|(_, open)| *open) else {
            return false;
        };
        self.order = went[..last_open].iter().map(|(actor, _)| *actor).collect();
        self.order.push(1);
        true
    }
}

/// Lets both actors take their steps in this order until they end. Returns who went at each step, and whether
/// the other is still to be tried.
async fn directed(order: Vec<usize>, mut reports: mpsc::UnboundedReceiver<Report>) -> Vec<(usize, bool)> {
    let mut states = [Actor::default(), Actor::default()];
    let mut naps = 0;
    let mut went = Vec::new();
    loop {
        settle(&mut reports, &mut states).await;
        let waiting: Vec<usize> = (0..2).filter(|at| !states[*at].waits.is_empty()).collect();
        let Some(first) = waiting.first().copied() else {
            if states.iter().all(|actor| actor.over) || naps == NAPS_MAX {
                break;
            }
            // One of the actors waits only for time.
            naps += 1;
            tokio::time::sleep(NAP).await;
            continue;
        };
        let chosen = order.get(went.len()).copied().unwrap_or(first);
        went.push((chosen, chosen == 0 && waiting.contains(&1)));
        let go = states[chosen].waits.pop_front().expect("an actor that waits");
        let _ = go.send(());
    }
    assert!(
        states.iter().all(|actor| actor.over),
        "an actor is stuck after {went:?}"
    );
    went
}

/// Lets every other ready task run, this many times.
pub(crate) async fn let_others_go_on(times: usize) {
    let looks = async move {
        for _ in 0..times {
            behind_the_others().await;
        }
    };
    tokio::spawn(looks).await.expect("looks do not panic");
}

/// Goes to the end of this thread's task queue. Unlike `yield_now`, it does not poll the operating system for
/// I/O. Use it only inside a task: the future in `block_on` is not in the queue.
async fn behind_the_others() {
    let mut queued = false;
    poll_fn(|context| {
        if queued {
            return Poll::Ready(());
        }
        queued = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Until both actors wait or have ended.
async fn settle(reports: &mut mpsc::UnboundedReceiver<Report>, states: &mut [Actor; 2]) {
    let mut quiet = 0;
    while quiet < QUIET_LOOKS {
        behind_the_others().await;
        quiet += 1;
        while let Ok(report) = reports.try_recv() {
            quiet = 0;
            match report {
                Report::Waits(actor, go) => states[actor].waits.push_back(go),
                Report::Over(actor) => states[actor].over = true,
            }
        }
    }
}

/// The shared store as one actor reaches it, step by step.
#[derive(Clone)]
pub(crate) struct TurnStore {
    pub(crate) inner: Arc<dyn KeyValueStore>,
    pub(crate) turn: Turn,
    /// Whether a removed record is written anyway, as a store without compare-and-swap would.
    pub(crate) writes_blindly: bool,
}

#[async_trait]
impl KeyValueStore for TurnStore {
    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
    }

    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        if let Some(barrier) = barrier
            && self.load(barrier).await?.is_some()
        {
            return Ok(Inserted::Barred);
        }
        self.turn.wait().await;
        self.inner.insert(record, event).await
    }

    async fn load(&self, name: Name) -> Result<Option<Record>, StoreError> {
        self.turn.wait().await;
        self.inner.load(name).await
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        self.turn.wait().await;
        let written = self.inner.replace(record.clone(), expected, event).await?;
        if self.writes_blindly && written == Replaced::Missing {
            self.inner.insert(record, Vec::new()).await?;
            return Ok(Replaced::Done);
        }
        Ok(written)
    }

    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        self.turn.wait().await;
        self.inner.remove(name, event).await
    }

    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        self.turn.wait().await;
        self.inner.list(index, after, limit).await
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError> {
        // No turn of its own: an ending before this read equals an earlier one, and only adds orders.
        self.inner.load_many(names).await
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.turn.wait().await;
        self.inner.acquire_lease(name, holder, ttl).await
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        self.inner.renew_lease(lease, ttl).await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.turn.wait().await;
        self.inner.release_lease(lease).await
    }

    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        self.turn.wait().await;
        self.inner.remember(name, value, ttl).await
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        self.inner.published(after).await
    }

    async fn position(&self) -> Result<String, StoreError> {
        self.inner.position().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}
