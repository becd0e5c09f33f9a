//! A load that remembers acknowledged changes, and compares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, RwLock};
use tokio::task::JoinSet;

use super::{WAIT_MAX, eventually};

/// Concurrent tasks.
const WORKERS: u64 = 12;

/// Successful operations in a row that each worker needs before the engine counts as back, so that a worker
/// still waiting for the lost node counts too.
const IN_A_ROW: u64 = 16;

/// Sessions each worker keeps.
const KEPT: usize = 12;

/// An operation that failed or has an unknown outcome; it may be retried.
#[derive(Debug)]
pub(crate) struct Retryable;

/// A session store under load. Any failure except an unavailable store fails the test.
#[async_trait]
pub(crate) trait Target: Send + Sync + 'static {
    /// Creates a session of a person. Returns its name. Its version is 1.
    async fn create(&self, person: &str) -> Result<String, Retryable>;
    /// The version of a session, if it exists.
    async fn read(&self, name: &str) -> Result<Option<u64>, Retryable>;
    /// Changes a session. Returns its version, or none if it does not exist.
    async fn write(&self, name: &str) -> Result<Option<u64>, Retryable>;
    /// Whether a person's list holds a session.
    async fn lists(&self, person: &str, name: &str) -> Result<bool, Retryable>;
    /// Ends a session.
    async fn end(&self, name: &str) -> Result<(), Retryable>;
}

/// The known state of a session.
#[derive(Clone, Debug)]
struct Known {
    name: String,
    person: String,
    /// The last version acknowledged.
    version: u64,
    /// Whether an ending was requested, and whether it was acknowledged.
    ending: bool,
    ended: bool,
    /// The acknowledged state that had reached the replica when the load was paused.
    settled: Option<(u64, bool)>,
}

/// A running load; ends when dropped.
pub(crate) struct Load {
    target: Arc<dyn Target>,
    shared: Arc<Shared>,
    _workers: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    known: [Mutex<Vec<Known>>; WORKERS as usize],
    /// Each operation holds it; a pause waits for all of them.
    gate: RwLock<()>,
    done: AtomicU64,
    in_a_row: [AtomicU64; WORKERS as usize],
    errors: AtomicU64,
}

impl Load {
    pub(crate) fn start(target: Arc<dyn Target>) -> Self {
        let shared = Arc::<Shared>::default();
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            workers.spawn(work(worker, Arc::clone(&target), Arc::clone(&shared)));
        }
        Self {
            target,
            shared,
            _workers: workers,
        }
    }

    /// Operations that failed so far.
    pub(crate) fn errors(&self) -> u64 {
        self.shared.errors.load(Ordering::SeqCst)
    }

    /// Waits until this many more operations succeeded.
    pub(crate) async fn runs_on(&self, operations: u64) {
        let until = self.shared.done.load(Ordering::SeqCst) + operations;
        eventually("operations to be done", async || {
            self.shared.done.load(Ordering::SeqCst) >= until
        })
        .await;
    }

    /// Waits until operations succeed again.
    pub(crate) async fn recovers(&self) {
        let each = &self.shared.in_a_row;
        each.iter().for_each(|count| count.store(0, Ordering::SeqCst));
        eventually("the load to recover", async || {
            each.iter().all(|count| count.load(Ordering::SeqCst) >= IN_A_ROW)
        })
        .await;
    }

    /// Lets running operations finish, and holds new ones until the returned value is dropped.
    pub(crate) async fn pause(&self) -> Paused<'_> {
        let gate = self.shared.gate.write().await;
        let mut known = Vec::new();
        for one in &self.shared.known {
            known.push(one.lock().await);
        }
        Paused { known, _gate: gate }
    }

    /// Marks everything acknowledged until now as required.
    pub(crate) async fn settle_all(&self) {
        self.pause().await.settle();
    }

    /// Every session that reached the replica has that version or a later one, unless it was ended.
    pub(crate) async fn nothing_settled_is_lost(&self) {
        let paused = self.pause().await;
        let mut seen = 0;
        for known in paused.known.iter().flat_map(|known| known.iter()) {
            let Some((version, ended)) = known.settled else {
                continue;
            };
            let found = patiently(|| self.target.read(&known.name)).await;
            if ended {
                assert_eq!(found, None, "an ended session is back: {known:?}");
            } else if !known.ending {
                seen += 1;
                assert!(found >= Some(version), "lost: {known:?}, found {found:?}");
                let listed = patiently(|| self.target.lists(&known.person, &known.name)).await;
                assert!(listed, "not listed: {known:?}");
            }
        }
        assert!(seen >= 20, "only {seen} sessions were there to be lost");
    }
}

/// A paused load.
pub(crate) struct Paused<'a> {
    known: Vec<tokio::sync::MutexGuard<'a, Vec<Known>>>,
    _gate: tokio::sync::RwLockWriteGuard<'a, ()>,
}

impl Paused<'_> {
    /// Marks everything acknowledged as required, and resumes the load.
    pub(crate) fn settle(mut self) {
        for known in self.known.iter_mut().flat_map(|known| known.iter_mut()) {
            // A failed ending may have been done or not.
            if known.ended == known.ending {
                known.settled = Some((known.version, known.ended));
            }
        }
    }
}

/// Retries operations that may be repeated.
async fn patiently<T, F: Future<Output = Result<T, Retryable>>>(operation: impl Fn() -> F) -> T {
    let again = async {
        loop {
            if let Ok(done) = operation().await {
                return done;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, again).await.unwrap()
}

async fn work(worker: u64, target: Arc<dyn Target>, shared: Arc<Shared>) {
    let person = format!("person {worker}");
    for turn in 0_u64.. {
        let gate = shared.gate.read().await;
        let mut known = shared.known[worker as usize].lock().await;
        let outcome = turn_of(turn, &person, &mut known, &*target).await;
        drop((known, gate));
        let in_a_row = &shared.in_a_row[worker as usize];
        if outcome.is_ok() {
            shared.done.fetch_add(1, Ordering::SeqCst);
            in_a_row.fetch_add(1, Ordering::SeqCst);
        } else {
            shared.errors.fetch_add(1, Ordering::SeqCst);
            in_a_row.store(0, Ordering::SeqCst);
        }
        // Lets a pause begin between two operations.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// One operation on one of the sessions of a worker.
async fn turn_of(
    turn: u64,
    person: &str,
    known: &mut Vec<Known>,
    target: &dyn Target,
) -> Result<(), Retryable> {
    let open: Vec<usize> = (0..known.len()).filter(|at| !known[*at].ending).collect();
    if open.len() < KEPT {
        let name = target.create(person).await?;
        known.push(Known {
            name,
            person: person.to_owned(),
            version: 1,
            ending: false,
            ended: false,
            settled: None,
        });
        return Ok(());
    }
    let ends = turn.is_multiple_of(12);
    // The youngest session ends, so that settled ones remain to be checked, even on a fast machine.
    let at = if ends {
        open.len() - 1
    } else {
        turn as usize * 7 % open.len()
    };
    let one = &mut known[open[at]];
    match turn % 12 {
        _ if ends => {
            one.ending = true;
            target.end(&one.name).await?;
            one.ended = true;
        }
        1 => drop(target.lists(person, &one.name).await?),
        2..=6 => drop(target.read(&one.name).await?),
        _ => match target.write(&one.name).await? {
            Some(version) => one.version = version,
            // Created after the replica was in sync, and lost with the master.
            None => assert_eq!(one.settled, None, "lost: {one:?}"),
        },
    }
    Ok(())
}
