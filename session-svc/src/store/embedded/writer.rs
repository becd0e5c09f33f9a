//! How writes reach the [`Worker`], and what it says of itself. A file has a thread that writes. In memory each caller writes.
//!
//! Invariants
//! - An acknowledgement follows a commit that is on the disk; what fails to commit is answered as an error.
//! - Nothing waits for the queue: when it is full the caller gets an error.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use redb::Error;
use tokio::sync::{oneshot, watch};

use crate::store::StoreError;

use super::ballast::Kind;
use super::error::store_error;
use super::tables::Tables;
use super::worker::Worker;

/// Writes that may wait: a few commits' worth; beyond it the disk is too slow and callers get an error.
const QUEUE: usize = 4_096;

/// How often a write that can do without room is handed in: the commit in which the lack of room is found takes back all
/// writes that share it.
const ATTEMPTS: usize = 4;

pub(super) type Acknowledge = Box<dyn FnOnce() + Send>;
pub(super) type Apply = Box<dyn for<'t> FnOnce(&mut Tables<'t>) -> Result<Acknowledge, Error> + Send>;

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
    room: watch::Receiver<Option<Kind>>,
}

enum Way {
    /// A thread of its own commits what has queued up meanwhile.
    Thread(Option<(SyncSender<Job>, JoinHandle<()>)>),
    /// The caller commits at once: no write waits for a disk.
    Caller(Mutex<Worker>),
}

impl Writer {
    /// Starts the thread. In memory there is none: each write is committed on its caller's task.
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

    /// Runs `apply` in a transaction and answers once it is on the disk. It runs again in another one if the first was taken
    /// back for want of room.
    pub(super) async fn write<T, F>(&self, kind: Kind, apply: F) -> Result<T, StoreError>
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
                Err(StoreError::Full) if kind < Kind::Addition => {}
                Err(error) => return Err(error),
            }
        }
        self.check()?;
        Err(WriterError::Lost.into())
    }

    /// What became of it; `None` if the transaction was taken back.
    async fn try_write<T, F>(&self, kind: Kind, apply: F) -> Result<Option<Result<T, StoreError>>, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&mut Tables<'t>) -> Result<T, Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let apply: Apply = Box::new(move |tables| {
            let outcome = match apply(tables) {
                // An unreadable record is found before anything is written, or is removed: the others' writes go on.
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

    /// Whether there is room, and the last commit went well.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match *self.room.borrow() {
            Some(Kind::Addition) => Ok(()),
            Some(_) => Err(StoreError::Full),
            None => Err(WriterError::Failing.into()),
        }
    }

    /// Whether what is there can be changed.
    pub(super) fn check_changes(&self) -> Result<(), StoreError> {
        match *self.room.borrow() {
            Some(Kind::Change) => Ok(()),
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
