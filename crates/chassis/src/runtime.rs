//! The asynchronous runtimes, and what a running service gets from the process around it.
//!
//! The one place that decides how work is spread over cores: a runtime for background work, and for each core a *worker*, a thread
//! with a runtime of its own that serves connections. A connection stays with its worker, so that a request wakes no other thread; on a
//! few cores this costs less than one runtime over all of them (docs/decisions/schedulers.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

use arc_swap::ArcSwap;
use prometheus::Registry;
use tokio::runtime::{Builder, Handle, Id};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::readiness::Readiness;

/// Work on blocking threads is not waited for longer than this at the end.
const BLOCKING_GRACE: Duration = Duration::from_secs(1);

/// Threads of a worker for what blocks, files and names above all: each has a heap of its own, so that hundreds of them, which a
/// flood of requests for files would start, are memory that a small container does not have.
const BLOCKING_MAX: usize = 32;

/// A worker looks up this often. Whoever sets a timer for before the time a worker means to wake anyway makes it wake itself at
/// once, by a system call for each timer, and deadlines of calls are such timers: with this, none is. Shorter than the
/// deadlines, and long enough to cost nothing at rest.
const TICK: Duration = Duration::from_millis(250);

/// What a service gets to run with.
#[derive(Clone)]
pub struct Runtime {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Cancelled when no new work is to be taken; what is in flight may finish.
    pub shutdown: CancellationToken,
    /// Whether traffic is welcome; add conditions to it.
    pub readiness: Readiness,
    /// Where metrics are registered.
    pub metrics: Registry,
    /// Who serves connections.
    pub workers: Workers,
}

/// The threads that serve connections, each with a runtime of its own, taking turns. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workers {
    handles: Arc<[Handle]>,
    turn: Arc<AtomicUsize>,
}

impl Workers {
    /// The runtime this is called on, and no other. Panics outside a tokio runtime.
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

    /// What `make` makes for each worker, by the worker's number. It is called in the worker's context: tasks it spawns run there.
    pub(crate) fn each<T>(&self, make: impl Fn() -> T) -> Arc<[T]> {
        let made = self.handles.iter().map(|worker| {
            let _context = worker.enter();
            make()
        });
        made.collect()
    }

    /// The worker whose turn it is, and its number.
    pub(crate) fn next(&self) -> Option<(usize, &Handle)> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let number = turn.checked_rem(self.handles.len())?;
        Some((number, self.handles.get(number)?))
    }
}

/// A value for each scheduler, made when it is first asked for there: connections that stay with the scheduler that uses
/// them wake no other one. Those of the newest [`SCHEDULERS_MAX`] schedulers are kept.
pub struct PerScheduler<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    made: ArcSwap<Vec<(Id, Arc<T>)>>,
}

/// Schedulers of a process are about as many as its cores; more than this are not expected.
pub const SCHEDULERS_MAX: usize = 128;

impl<T> PerScheduler<T> {
    /// Makes nothing yet.
    pub fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(make),
            made: ArcSwap::default(),
        }
    }

    /// The value of the scheduler this is called on. Panics outside a tokio runtime.
    pub fn here(&self) -> Arc<T> {
        let here = Handle::current().id();
        let find = |made: &[(Id, Arc<T>)]| {
            let found = made.iter().find(|(id, _)| *id == here);
            found.map(|(_, value)| Arc::clone(value))
        };
        if let Some(value) = find(&self.made.load()) {
            return value;
        }
        let value = Arc::new((self.make)());
        self.made.rcu(|made| {
            let mut made = Vec::clone(made);
            if find(&made).is_none() {
                made.truncate(SCHEDULERS_MAX - 1);
                made.insert(0, (here, Arc::clone(&value)));
            }
            made
        });
        find(&self.made.load()).unwrap_or(value)
    }

    /// The values that were made, of whatever scheduler.
    pub fn all(&self) -> Vec<Arc<T>> {
        let made = self.made.load();
        made.iter().map(|(_, value)| Arc::clone(value)).collect()
    }
}

impl<T> fmt::Debug for PerScheduler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PerScheduler({} made)", self.made.load().len())
    }
}

/// Never ends.
async fn tick() {
    loop {
        tokio::time::sleep(TICK).await;
    }
}

/// The scheduler of a command, which works alone and ends with it.
pub(crate) fn alone() -> io::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The schedulers of a process.
pub(crate) struct Schedulers {
    main: tokio::runtime::Runtime,
    workers: Workers,
    threads: Vec<JoinHandle<()>>,
    over: CancellationToken,
}

impl Schedulers {
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
            main: Builder::new_current_thread().enable_all().build()?,
            workers: Workers::of(handles.into()),
            threads,
            over,
        })
    }

    /// Who serves connections.
    pub(crate) fn workers(&self) -> Workers {
        self.workers.clone()
    }

    /// Runs a program on the scheduler for background work.
    pub(crate) fn block_on<T>(&self, program: impl Future<Output = T>) -> T {
        self.main.block_on(program)
    }

    /// Drops what still runs.
    pub(crate) fn stop(self) {
        self.over.cancel();
        self.main.shutdown_timeout(BLOCKING_GRACE);
        for thread in self.threads {
            // A worker that panicked has said so already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_turns_and_each_stays_on_its_own_thread() {
        let schedulers = Schedulers::start().unwrap();
        let workers = schedulers.workers();
        let threads = || async { std::thread::current().id() };
        let round = |count: usize| {
            schedulers.block_on(async {
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
        schedulers.stop();
    }

    #[test]
    fn what_each_worker_is_given_is_made_where_it_runs() {
        let schedulers = Schedulers::start().unwrap();
        let workers = schedulers.workers();
        let made = workers.each(|| Handle::current().id());
        let ids: Vec<_> = workers.handles.iter().map(Handle::id).collect();
        assert_eq!(made.to_vec(), ids);
        for _ in 0..2 * ids.len() {
            let (number, worker) = workers.next().unwrap();
            assert_eq!(made[number], worker.id());
        }
        schedulers.stop();
    }

    #[test]
    fn each_scheduler_has_its_own_value_and_keeps_it() {
        let schedulers = Schedulers::start().unwrap();
        let workers = schedulers.workers();
        let next = AtomicUsize::new(0);
        let values = Arc::new(PerScheduler::new(move || next.fetch_add(1, Ordering::Relaxed)));
        let count = workers.handles.len();
        let seen = schedulers.block_on(async {
            let mut seen = Vec::new();
            for _ in 0..2 * count {
                let values = Arc::clone(&values);
                seen.push(
                    workers
                        .next()
                        .unwrap()
                        .1
                        .spawn(async move { *values.here() })
                        .await
                        .unwrap(),
                );
            }
            seen
        });
        let once: Vec<usize> = (0..count).collect();
        assert_eq!(seen, [once.clone(), once].concat());
        schedulers.stop();
    }
}
