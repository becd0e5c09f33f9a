//! Commits queued writes together, and acknowledges them only then.
//!
//! Invariant: a commit without room leaves the file unchanged. The next commit uses ballast, without new
//! sessions.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use chassis::clock::Clock;
use tokio::sync::watch;

use crate::store::StoreError;

use super::ballast::{Ballast, WriteKind};
use super::error::FileProblem;
use super::open_file::OpenFile;
use super::tables::Tables;
use super::writer::{Acknowledge, Job};

/// Writes in one commit. Keeps a commit, and so the first writer's wait, within milliseconds.
const BATCH: usize = 512;

/// Writes in one commit while there is no room. Bounds the pages that a commit needs before it frees others.
const BATCH_WITHOUT_ROOM: usize = 8;

/// How often expired records are removed without other writes.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Pause between attempts after a failed commit, and between checks for room. Each failure reopens the file,
/// which may take as long as reading it.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Expired records that one commit removes, to bound its duration. The next commit removes more.
const SWEPT_AT_ONCE: usize = 512;

/// Commits queued writes.
pub(super) struct Worker {
    /// Time of the failed commit, while the next one has to wait.
    failed_at: Option<Instant>,
    looked_at: Instant,
    file: Arc<OpenFile>,
    /// None in memory.
    pub(super) ballast: Option<Ballast>,
    latest: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
    /// The kind of write that there is room for; `None` if the last commit failed for another reason.
    pub(super) room: watch::Sender<Option<WriteKind>>,
}

impl Worker {
    /// Creates a worker that has checked for room, so that no lease is granted before.
    pub(super) fn new(
        file: Arc<OpenFile>,
        ballast: Option<Ballast>,
        latest: watch::Sender<u64>,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let room = ballast.as_ref().map_or(Ok(WriteKind::Addition), Ballast::hold)?;
        Ok(Self {
            failed_at: None,
            looked_at: Instant::now(),
            file,
            ballast,
            latest,
            clock,
            room: watch::Sender::new(Some(room)),
        })
    }

    /// Works until all senders are gone.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let (timeout, most) = match self.room() {
                Some(WriteKind::Addition) => (SWEEP_EVERY, BATCH),
                None => (RETRY_EVERY, BATCH),
                Some(_) => (RETRY_EVERY, BATCH_WITHOUT_ROOM),
            };
            let first = match jobs.recv_timeout(timeout) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let batch: Vec<Job> = first.into_iter().chain(jobs.try_iter().take(most)).collect();
            if self.failed_at.is_some_and(|at| at.elapsed() < RETRY_EVERY) {
                // Dropped: the callers get the state as an error.
                continue;
            }
            self.commit(batch);
            if self.room() != Some(WriteKind::Addition) && self.looked_at.elapsed() >= RETRY_EVERY {
                self.look_for_room();
            }
        }
    }

    /// Commits the writes of a batch that the state allows. Drops the others, whose callers get an error.
    pub(super) fn commit(&mut self, batch: Vec<Job>) {
        let room = self.room();
        let admitted = batch
            .into_iter()
            .filter(|job| room.is_none_or(|most| job.kind <= most));
        let sweep = match room {
            Some(WriteKind::Ending | WriteKind::Change) => BATCH_WITHOUT_ROOM,
            _ => SWEPT_AT_ONCE,
        };
        // Kept until the end: after a failed commit, their callers wake once `room` has the reason.
        let mut unanswered: Vec<Acknowledge> = Vec::new();
        let outcome = self.file.write(|transaction| {
            let mut tables = Tables::open(&transaction, self.clock.now_ms())?;
            for job in admitted {
                unanswered.push((job.apply)(&mut tables)?);
            }
            tables.sweep(sweep)?;
            let (changed, latest) = (tables.changed, tables.latest_event);
            drop(tables);
            if changed {
                transaction.commit()?;
            } else {
                transaction.abort()?;
            }
            Ok(latest)
        });
        match outcome {
            Ok(latest) => {
                self.latest
                    .send_if_modified(|known| std::mem::replace(known, latest) != latest);
                if self.failed_at.take().is_some() {
                    self.look_for_room();
                }
                unanswered.into_iter().for_each(|acknowledge| acknowledge());
            }
            Err(error) => self.recover(&error),
        }
    }

    /// Reopens the file at once, so that it can be read, and releases ballast if there is no room.
    fn recover(&mut self, error: &StoreError) {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "a commit to the session file failed: none of its writes was acknowledged"
        );
        let is_full = matches!(error, StoreError::Full);
        let mut room = if is_full { self.give_up() } else { None };
        while let Err(error) = self.file.open_again() {
            let is_full = matches!(error.problem, FileProblem::Full);
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the session file cannot be opened again yet");
            room = if is_full { self.give_up() } else { None };
            if room.is_none() {
                break;
            }
        }
        self.room
            .send_replace(room.or(is_full.then_some(WriteKind::Ending)));
        // With more room than before, the next commit need not wait.
        self.failed_at = room.is_none().then(Instant::now);
        self.looked_at = Instant::now();
    }

    /// Releases ballast and returns what there is room for; `None` if no ballast is left.
    fn give_up(&self) -> Option<WriteKind> {
        let given = self.ballast.as_ref().map_or(Ok(None), Ballast::give_up);
        match given {
            Ok(Some(WriteKind::Ending)) => {
                tracing::error!("there is little room left for the session file: sessions can only be ended");
            }
            Ok(Some(_)) => tracing::error!(
                "there is no room on the disk for the session file: no session can begin until there is"
            ),
            Ok(None) => tracing::error!("there is no room left for the session file, not even for endings"),
            Err(ref error) => {
                let error = error as &dyn std::error::Error;
                tracing::error!(error, "the ballast of the session file cannot be released");
            }
        }
        given.ok().flatten()
    }

    /// Reserves the ballast if there is room for it. New sessions are possible again then.
    fn look_for_room(&mut self) {
        self.looked_at = Instant::now();
        let room = self
            .ballast
            .as_ref()
            .map_or(Ok(WriteKind::Addition), Ballast::hold);
        let room = room.unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the ballast of the session file cannot be reserved");
            WriteKind::Ending
        });
        let before = self.room.send_replace(Some(room));
        if before != Some(WriteKind::Addition) && room == WriteKind::Addition {
            tracing::info!("there is room for the session file again");
        }
    }

    fn room(&self) -> Option<WriteKind> {
        *self.room.borrow()
    }
}
