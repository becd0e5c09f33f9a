//! The one thread that writes: takes what has queued up, commits it at once, and only then acknowledges.
//!
//! Invariants
//! - An acknowledgement follows a commit that is on the disk; what fails to commit is answered as an error.
//! - Nothing waits for the queue: when it is full the caller is told so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use chassis::clock::Clock;
use redb::Database;
use tokio::sync::{oneshot, watch};

use crate::store::StoreError;

use super::store_error;
use super::tables::Tables;

/// Writes that may wait: a few commits' worth; beyond it the disk is too slow and callers are told.
const QUEUE: usize = 4_096;

/// Writes in one commit: keeps a commit, and so the first writer's wait, within milliseconds.
const BATCH: usize = 512;

/// How often expired records are looked for when nobody writes.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Expired records cleared away by a commit: bounds its duration. More are left to the next.
const SWEPT_AT_ONCE: usize = 512;

type Acknowledge = Box<dyn FnOnce() + Send>;
type Job = Box<dyn for<'t> FnOnce(&mut Tables<'t>) -> Result<Acknowledge, StoreError> + Send>;

#[derive(Debug, thiserror::Error)]
enum WriterError {
    #[error("too many writes are waiting for the disk")]
    Behind,
    #[error("the write could not be committed")]
    Lost,
    #[error("the last commit failed")]
    Failing,
}

impl From<WriterError> for StoreError {
    fn from(error: WriterError) -> Self {
        StoreError::Unavailable(Box::new(error))
    }
}

/// Hands writes to the thread; dropping it waits for what has queued up.
pub(super) struct Writer {
    queue: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    failing: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the thread; `latest` is told the number of the last committed event.
    pub(super) fn start(
        database: Arc<Database>,
        latest: watch::Sender<u64>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, std::io::Error> {
        let (queue, jobs) = sync_channel(QUEUE);
        let failing = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            database,
            latest,
            clock,
            failing: Arc::clone(&failing),
        };
        let thread = std::thread::Builder::new()
            .name("session-file".to_owned())
            .spawn(move || worker.run(&jobs))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            failing,
        })
    }

    /// Runs `apply` in a transaction and answers once it is on the disk.
    pub(super) async fn write<T, F>(&self, apply: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&mut Tables<'t>) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |tables| {
            let outcome = match apply(tables) {
                // An unreadable record is found before anything is written: the others' writes go on.
                outcome @ (Ok(_) | Err(StoreError::Corrupt)) => outcome,
                Err(error) => return Err(error),
            };
            Ok(Box::new(move || drop(answer.send(outcome))))
        });
        let queue = self.queue.as_ref().ok_or(WriterError::Lost)?;
        queue.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => WriterError::Behind,
            TrySendError::Disconnected(_) => WriterError::Lost,
        })?;
        answered.await.map_err(|_| WriterError::Lost)?
    }

    /// Whether the last commit went well.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if self.failing.load(Ordering::Relaxed) {
            Err(WriterError::Failing.into())
        } else {
            Ok(())
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    database: Arc<Database>,
    latest: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
    failing: Arc<AtomicBool>,
}

impl Worker {
    fn run(self, jobs: &Receiver<Job>) {
        loop {
            let first = match jobs.recv_timeout(SWEEP_EVERY) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let batch: Vec<Job> = first.into_iter().chain(jobs.try_iter().take(BATCH)).collect();
            let outcome = self.commit(batch);
            self.failing.store(outcome.is_err(), Ordering::Relaxed);
            if let Err(error) = outcome {
                let cause = std::error::Error::source(&error)
                    .map(ToString::to_string)
                    .unwrap_or_default();
                tracing::error!(%error, cause, "a commit to the session file failed");
            }
        }
    }

    fn commit(&self, batch: Vec<Job>) -> Result<(), StoreError> {
        let transaction = self.database.begin_write().map_err(store_error)?;
        let mut tables = Tables::open(&transaction, self.clock.now_ms())?;
        let mut acknowledgements = Vec::with_capacity(batch.len());
        for job in batch {
            acknowledgements.push(job(&mut tables)?);
        }
        tables.sweep(SWEPT_AT_ONCE)?;
        let (changed, latest) = (tables.changed, tables.latest_event);
        drop(tables);
        if changed {
            transaction.commit().map_err(store_error)?;
        } else {
            transaction.abort().map_err(store_error)?;
        }
        self.latest
            .send_if_modified(|known| std::mem::replace(known, latest) != latest);
        acknowledgements.into_iter().for_each(|acknowledge| acknowledge());
        Ok(())
    }
}
