//! Passes writes to the [`Worker`] and reports its state to callers. For a file the worker has its own thread.
//!
//! Invariants
//! - An acknowledgement follows a commit on the disk. A failed commit is an error.
//! - No caller waits for the queue: if it is full, the caller gets an error.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use redb::Error;
use tokio::sync::{oneshot, watch};

use crate::store::StoreError;

use super::ballast::WriteKind;
use super::error::store_error;
use super::tables::Tables;
use super::worker::Worker;

/// Most queued writes: a few commits' worth. With more, the disk is too slow and callers get an error.
const QUEUE: usize = 4_096;

/// Attempts for a write that the ballast still allows. A commit on a full disk rolls back all its writes.
const ATTEMPTS: usize = 4;

pub(super) type Acknowledge = Box<dyn FnOnce() + Send>;
pub(super) type Apply = Box<dyn for<'t> FnOnce(&mut Tables<'t>) -> Result<Acknowledge, Error> + Send>;

pub(super) struct Job {
    pub(super) kind: WriteKind,
    pub(super) apply: Apply,
}

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

/// Passes writes to the worker. Dropping it waits for queued writes.
pub(super) struct Writer {
    way: Way,
    room: watch::Receiver<Option<WriteKind>>,
}

enum Way {
    /// A writer thread commits queued writes.
    Thread(Option<(SyncSender<Job>, JoinHandle<()>)>),
    /// The caller commits at once, because no write waits for a disk.
    Caller(Mutex<Worker>),
}

impl Writer {
    /// Starts the thread for a file. In memory, each write commits on its caller's task.
    pub(super) fn start(worker: Worker) -> std::io::Result<Self> {
        let room = worker.room.subscribe();
        if worker.ballast.is_none() {
            let way = Way::Caller(Mutex::new(worker));
            return Ok(Self { way, room });
        }
        let (queue, jobs) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("session-file".to_owned())
            .spawn(move || worker.run(&jobs))?;
        let way = Way::Thread(Some((queue, thread)));
        Ok(Self { way, room })
    }

    /// Runs `apply` in a transaction, and returns once it is on the disk. Runs it again in a new transaction
    /// if the first one was rolled back for lack of room.
    pub(super) async fn write<T, F>(&self, kind: WriteKind, apply: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> Fn(&mut Tables<'t>) -> Result<T, Error> + Clone + Send + 'static,
    {
        for _ in 0..ATTEMPTS {
            if let Some(outcome) = self.try_write(kind, apply.clone()).await? {
                return outcome;
            }
            match self.check() {
                Ok(()) => {}
                Err(StoreError::Full) if kind < WriteKind::Addition => {}
                Err(error) => return Err(error),
            }
        }
        self.check()?;
        Err(WriterError::Lost.into())
    }

    /// The result of the write; `None` if the transaction was rolled back.
    async fn try_write<T, F>(
        &self,
        kind: WriteKind,
        apply: F,
    ) -> Result<Option<Result<T, StoreError>>, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&mut Tables<'t>) -> Result<T, Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let apply: Apply = Box::new(move |tables| {
            let outcome = match apply(tables) {
                // The unreadable record was found before any change, or it was removed: the commit continues.
                outcome @ (Ok(_) | Err(Error::Corrupted(_))) => outcome.map_err(store_error),
                Err(error) => return Err(error),
            };
            Ok(Box::new(move || drop(answer.send(outcome))))
        });
        let job = Job { kind, apply };
        match &self.way {
            Way::Caller(worker) => {
                let mut worker = worker.lock().unwrap_or_else(PoisonError::into_inner);
                worker.commit(vec![job]);
            }
            Way::Thread(None) => return Err(WriterError::Lost.into()),
            Way::Thread(Some((queue, _))) => queue.try_send(job).map_err(|error| match error {
                TrySendError::Full(_) => WriterError::Behind,
                TrySendError::Disconnected(_) => WriterError::Lost,
            })?,
        }
        Ok(answered.await.ok())
    }

    /// Fails without room, or after a failed commit.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match *self.room.borrow() {
            Some(WriteKind::Addition) => Ok(()),
            Some(_) => Err(StoreError::Full),
            None => Err(WriterError::Failing.into()),
        }
    }

    /// Fails if existing records cannot be changed.
    pub(super) fn check_changes(&self) -> Result<(), StoreError> {
        match *self.room.borrow() {
            Some(WriteKind::Change) => Ok(()),
            _ => self.check(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Way::Thread(thread) = &mut self.way
            && let Some((queue, thread)) = thread.take()
        {
            drop(queue);
            let _ = thread.join();
        }
    }
}
