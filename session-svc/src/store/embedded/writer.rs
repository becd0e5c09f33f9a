//! How writes reach the [`Worker`], and what it says of itself. A file has a thread that writes. In memory each caller writes.
//!
//! Invariants
//! - An acknowledgement follows a commit that is on the disk; what fails to commit is answered as an error.
//! - Nothing waits for the queue: when it is full the caller gets an error.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::store::StoreError;

use super::tables::Tables;
use super::worker::Worker;

/// Writes that may wait: a few commits' worth; beyond it the disk is too slow and callers get an error.
const QUEUE: usize = 4_096;

/// How often a write that can do without room is handed in: the commit in which the lack of room is found takes back all
/// writes that share it.
const ATTEMPTS: usize = 4;

/// The last commit went well.
pub(super) const WRITING: u8 = 0;
/// The last commit failed.
pub(super) const FAILING: u8 = 1;
/// There is no room for more; what is there can be changed and removed.
pub(super) const FULL: u8 = 2;
/// There is no room but for removals.
pub(super) const EXHAUSTED: u8 = 3;

/// What a write does with the room in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Gives it back: removes, or adds a mark that is forgotten within minutes.
    Ending,
    /// Writes in the place of what is there.
    Change,
    /// Takes more.
    Addition,
}

pub(super) type Acknowledge = Box<dyn FnOnce() + Send>;
pub(super) type Apply = Box<dyn for<'t> FnOnce(&mut Tables<'t>) -> Result<Acknowledge, StoreError> + Send>;

pub(super) struct Job {
    pub(super) kind: Kind,
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

/// Hands writes to the worker; dropping it waits for what has queued up.
pub(super) struct Writer {
    way: Way,
    state: Arc<AtomicU8>,
}

enum Way {
    /// A thread of its own commits what has queued up meanwhile.
    Thread(Option<(SyncSender<Job>, JoinHandle<()>)>),
    /// The caller commits at once: no write waits for a disk.
    Caller(Mutex<Worker>),
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(worker: Worker) -> Result<Self, std::io::Error> {
        let (queue, jobs) = sync_channel(QUEUE);
        let state = Arc::clone(&worker.state);
        let thread = std::thread::Builder::new()
            .name("session-file".to_owned())
            .spawn(move || worker.run(&jobs))?;
        let way = Way::Thread(Some((queue, thread)));
        Ok(Self { way, state })
    }

    /// Commits each write on its caller's task.
    pub(super) fn of_callers(worker: Worker) -> Self {
        let state = Arc::clone(&worker.state);
        let way = Way::Caller(Mutex::new(worker));
        Self { way, state }
    }

    /// Runs `apply` in a transaction and answers once it is on the disk. It runs again in another one if the first was taken
    /// back for want of room.
    pub(super) async fn write<T, F>(&self, kind: Kind, apply: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> Fn(&mut Tables<'t>) -> Result<T, StoreError> + Clone + Send + 'static,
    {
        let mut attempt = 1;
        loop {
            if let Some(outcome) = self.try_write(kind, apply.clone()).await? {
                return outcome;
            }
            match self.check() {
                Err(StoreError::Full) if kind < Kind::Addition && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
                Ok(()) if attempt < ATTEMPTS => attempt += 1,
                Ok(()) => return Err(WriterError::Lost.into()),
            }
        }
    }

    /// What became of it; `None` if the transaction was taken back.
    async fn try_write<T, F>(&self, kind: Kind, apply: F) -> Result<Option<Result<T, StoreError>>, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&mut Tables<'t>) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let apply: Apply = Box::new(move |tables| {
            let outcome = match apply(tables) {
                // An unreadable record is found before anything is written, or is removed: the others' writes go on.
                outcome @ (Ok(_) | Err(StoreError::Corrupt)) => outcome,
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

    /// Whether there is room, and the last commit went well.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self.state.load(Ordering::Acquire) {
            WRITING => Ok(()),
            FULL | EXHAUSTED => Err(StoreError::Full),
            _ => Err(WriterError::Failing.into()),
        }
    }

    /// Whether what is there can be changed.
    pub(super) fn check_changes(&self) -> Result<(), StoreError> {
        match self.state.load(Ordering::Acquire) {
            FULL => Ok(()),
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
