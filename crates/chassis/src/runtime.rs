//! The asynchronous runtimes, and what a service receives from its process.
//!
//! Distributes work over cores: one runtime for background work, and for each core a *worker*, a thread with
//! its own runtime that serves connections. A connection stays with its worker, so a request wakes no other
//! thread. On few cores this is cheaper than one shared runtime (docs/decisions/workers.md).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use prometheus::Registry;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::readiness::Readiness;

/// At the end, the process waits at most this long for blocking threads.
const BLOCKING_GRACE: Duration = Duration::from_secs(1);

/// Threads of a worker for blocking work, mainly files and name resolution. Each has a heap of its own; a
/// flood of file requests would start hundreds of them, too much memory for a small container.
const BLOCKING_MAX: usize = 32;

/// Each worker has a timer with this period. Without it, each call deadline would be the runtime's earliest
/// timer. Setting an earliest timer costs a system call that wakes the runtime. The period is shorter than call
/// deadlines, and long enough to cost nothing at rest.
const TICK: Duration = Duration::from_millis(250);

/// What a running service receives.
#[derive(Clone)]
pub struct Runtime {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Cancelled to stop new work; work in flight may finish.
    pub shutdown: CancellationToken,
    /// The process's readiness; services add conditions to it.
    pub readiness: Readiness,
    /// The registry for metrics.
    pub metrics: Registry,
    /// The threads that serve connections.
    pub workers: Workers,
}

/// The threads that serve connections in turn, each with its own runtime. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workers {
    handles: Arc<[Handle]>,
    turn: Arc<AtomicUsize>,
}

impl Workers {
    /// Only the current runtime. Panics outside a tokio runtime.
    #[must_use]
    pub fn here() -> Self {
        Self::of([Handle::current()].into())
    }

    fn of(handles: Arc<[Handle]>) -> Self {
        Self {
            handles,
            turn: Arc::default(),
        }
    }

    /// Calls `make` for each worker, in the worker's context: tasks it spawns run there.
    pub(crate) fn each<T>(&self, make: impl Fn() -> T) -> Arc<[T]> {
        let made = self.handles.iter().map(|worker| {
            let _context = worker.enter();
            make()
        });
        made.collect()
    }

    /// The next worker in turn, and its number.
    pub(crate) fn next(&self) -> Option<(usize, &Handle)> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let number = turn.checked_rem(self.handles.len())?;
        Some((number, self.handles.get(number)?))
    }
}

/// Never ends.
async fn tick() {
    loop {
        tokio::time::sleep(TICK).await;
    }
}

/// A single-threaded runtime, for a command or for background work.
pub(crate) fn alone() -> io::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The tokio runtimes of a process: one for background work, and one for each worker.
pub(crate) struct TokioRuntimes {
    /// Runs background work.
    pub(crate) main: tokio::runtime::Runtime,
    /// The threads that serve connections.
    pub(crate) workers: Workers,
    threads: Vec<JoinHandle<()>>,
    over: CancellationToken,
}

impl TokioRuntimes {
    /// Starts one worker for each core this process may use.
    pub(crate) fn start() -> io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let over = CancellationToken::new();
        let mut handles = Vec::with_capacity(count);
        let mut threads = Vec::with_capacity(count);
        for number in 1..=count {
            let worker = Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(BLOCKING_MAX)
                .build()?;
            handles.push(worker.handle().clone());
            let over = over.clone();
            let thread = std::thread::Builder::new().name(format!("worker-{number}"));
            threads.push(thread.spawn(move || {
                worker.block_on(over.run_until_cancelled(tick()));
                worker.shutdown_timeout(BLOCKING_GRACE);
            })?);
        }
        Ok(Self {
            main: alone()?,
            workers: Workers::of(handles.into()),
            threads,
            over,
        })
    }

    /// Stops the workers and drops all remaining tasks.
    pub(crate) fn stop(self) {
        self.over.cancel();
        self.main.shutdown_timeout(BLOCKING_GRACE);
        for thread in self.threads {
            // A panic in a worker is already reported.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_turns_and_each_stays_on_its_own_thread() {
        let runtimes = TokioRuntimes::start().unwrap();
        let workers = &runtimes.workers;
        let threads = || async { std::thread::current().id() };
        let round = |count: usize| {
            runtimes.main.block_on(async {
                let mut seen = Vec::new();
                for _ in 0..count {
                    seen.push(workers.next().unwrap().1.spawn(threads()).await.unwrap());
                }
                seen
            })
        };
        let count = workers.handles.len();
        let (first, second) = (round(count), round(count));
        assert_eq!(first, second);
        let mut distinct = first.clone();
        distinct.dedup();
        assert_eq!(distinct.len(), count);
        assert!(!first.contains(&std::thread::current().id()));
        runtimes.stop();
    }

    #[test]
    fn what_each_worker_is_given_is_made_where_it_runs() {
        let runtimes = TokioRuntimes::start().unwrap();
        let workers = &runtimes.workers;
        let made = workers.each(|| Handle::current().id());
        let ids: Vec<_> = workers.handles.iter().map(Handle::id).collect();
        assert_eq!(made.to_vec(), ids);
        for _ in 0..2 * ids.len() {
            let (number, worker) = workers.next().unwrap();
            assert_eq!(made[number], worker.id());
        }
        runtimes.stop();
    }
}
