//! The one thread that writes: takes what has queued up, commits it at once, and only then acknowledges.
//!
//! Invariants
//! - An acknowledgement follows a commit that is on the disk; what fails to commit is answered as an error.
//! - Nothing waits for the queue: when it is full the caller is told so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use chassis::clock::Clock;
use redb::WriteTransaction;
use tokio::sync::{oneshot, watch};

use crate::store::StoreError;

use super::opened::Opened;
use super::store_error;
use super::tables::Tables;

/// Writes that may wait: a few commits' worth; beyond it the disk is too slow and callers are told.
const QUEUE: usize = 4_096;

/// Writes in one commit: keeps a commit, and so the first writer's wait, within milliseconds.
const BATCH: usize = 512;

/// How often expired records are looked for when nobody writes.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How often a commit is tried after one failed: each failure opens the file again, which may take as long as
/// reading it.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Expired records cleared away by a commit: bounds its duration. More are left to the next.
const SWEPT_AT_ONCE: usize = 512;

/// The last commit went well.
const WRITING: u8 = 0;
/// The last commit failed.
const FAILING: u8 = 1;
/// The last commit failed for want of room.
const FULL: u8 = 2;

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
    state: Arc<AtomicU8>,
}

impl Writer {
    /// Starts the thread; `latest` is told the number of the last committed event.
    pub(super) fn start(
        file: Arc<Opened>,
        latest: watch::Sender<u64>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, std::io::Error> {
        let (queue, jobs) = sync_channel(QUEUE);
        let state = Arc::new(AtomicU8::new(WRITING));
        let worker = Worker {
            failed_at: None,
            file,
            latest,
            clock,
            state: Arc::clone(&state),
        };
        let thread = std::thread::Builder::new()
            .name("session-file".to_owned())
            .spawn(move || worker.run(&jobs))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            state,
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
                // An unreadable record is found before anything is written, or is removed: the others' writes go on.
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
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.check().err().unwrap_or_else(|| WriterError::Lost.into())),
        }
    }

    /// Whether the last commit went well.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self.state.load(Ordering::Acquire) {
            WRITING => Ok(()),
            FULL => Err(StoreError::Full),
            _ => Err(WriterError::Failing.into()),
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
    failed_at: Option<Instant>,
    file: Arc<Opened>,
    latest: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
    state: Arc<AtomicU8>,
}

impl Worker {
    fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let failing = self.state.load(Ordering::Relaxed) != WRITING;
            let first = match jobs.recv_timeout(if failing { RETRY_EVERY } else { SWEEP_EVERY }) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let batch: Vec<Job> = first.into_iter().chain(jobs.try_iter().take(BATCH)).collect();
            if self.failed_at.is_some_and(|at| at.elapsed() < RETRY_EVERY) {
                // Dropped: their callers are told the state.
                continue;
            }
            // Their callers wait until the state says why.
            let mut unanswered = Vec::with_capacity(batch.len());
            let outcome = self
                .file
                .write(|transaction| self.commit(transaction, batch, &mut unanswered));
            match outcome {
                Ok(()) => self.failed_at = None,
                Err(error) => self.recover(&error),
            }
        }
    }

    fn recover(&mut self, error: &StoreError) {
        let state = if matches!(error, StoreError::Full) {
            FULL
        } else {
            FAILING
        };
        self.state.store(state, Ordering::Release);
        let cause = std::error::Error::source(error)
            .map(ToString::to_string)
            .unwrap_or_default();
        tracing::error!(%error, cause, "a commit to the session file failed: nothing of it was acknowledged");
        // At once, so that it can be read; the next commit waits a while.
        if let Err(error) = self.file.open_again() {
            tracing::error!(%error, "the session file cannot be opened again yet");
        }
        self.failed_at = Some(Instant::now());
    }

    fn commit(
        &self,
        transaction: WriteTransaction,
        batch: Vec<Job>,
        acknowledgements: &mut Vec<Acknowledge>,
    ) -> Result<(), StoreError> {
        let mut tables = Tables::open(&transaction, self.clock.now_ms())?;
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
        self.state.store(WRITING, Ordering::Release);
        acknowledgements.drain(..).for_each(|acknowledge| acknowledge());
        Ok(())
    }
}
