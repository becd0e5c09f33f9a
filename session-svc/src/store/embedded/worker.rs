//! Commits what has queued up at once, and only then acknowledges.
//!
//! Invariant: a commit that finds no room leaves the file as it was. The ballast is given up for the next one, in which no session
//! begins.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use chassis::clock::Clock;
use tokio::sync::watch;

use crate::store::StoreError;

use super::ballast::{Ballast, Kind};
use super::error::FileProblem;
use super::open_file::OpenFile;
use super::tables::Tables;
use super::writer::{Acknowledge, Job};

/// Writes in one commit: keeps a commit, and so the first writer's wait, within milliseconds.
const BATCH: usize = 512;

/// Writes in one commit while there is no room: bounds the pages that it needs before it gives others back.
const BATCH_WITHOUT_ROOM: usize = 8;

/// How often expired records are looked for when nobody writes.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How often a commit is tried after one failed, and room looked for: each failure opens the file again, which may take as long as
/// reading it.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Expired records cleared away by a commit: bounds its duration. More are left to the next.
const SWEPT_AT_ONCE: usize = 512;

/// Commits what has queued up.
pub(super) struct Worker {
    /// When a commit failed, if the next has to wait.
    failed_at: Option<Instant>,
    looked_at: Instant,
    file: Arc<OpenFile>,
    /// None in memory.
    pub(super) ballast: Option<Ballast>,
    latest: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
    /// What there is room for; `None` if the last commit failed for another reason.
    pub(super) room: watch::Sender<Option<Kind>>,
}

impl Worker {
    /// A worker that knows whether there is room, so that no lease is given before.
    pub(super) fn new(
        file: Arc<OpenFile>,
        ballast: Option<Ballast>,
        latest: watch::Sender<u64>,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let room = ballast.as_ref().map_or(Ok(Kind::Addition), Ballast::hold)?;
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

    /// Works until nobody can hand anything in.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let (timeout, most) = match self.room() {
                Some(Kind::Addition) => (SWEEP_EVERY, BATCH),
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
                // Dropped: their callers get the state.
                continue;
            }
            self.commit(batch);
            if self.room() != Some(Kind::Addition) && self.looked_at.elapsed() >= RETRY_EVERY {
                self.look_for_room();
            }
        }
    }

    /// Commits those of a batch that the state admits. The others are dropped, and their callers get the state.
    pub(super) fn commit(&mut self, batch: Vec<Job>) {
        let room = self.room();
        let admitted = batch
            .into_iter()
            .filter(|job| room.is_none_or(|most| job.kind <= most));
        let sweep = match room {
            Some(Kind::Ending | Kind::Change) => BATCH_WITHOUT_ROOM,
            _ => SWEPT_AT_ONCE,
        };
        // Their callers wait until the state says why.
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

    /// Opens the file again, at once so that it can be read, and gives up ballast if there is no room.
    fn recover(&mut self, error: &StoreError) {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "a commit to the session file failed: nothing of it was acknowledged"
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
        self.room.send_replace(room.or(is_full.then_some(Kind::Ending)));
        // With more room than before the next commit need not wait.
        self.failed_at = room.is_none().then(Instant::now);
        self.looked_at = Instant::now();
    }

    /// Gives up ballast and returns what there is room for; `None` if there is none left.
    fn give_up(&self) -> Option<Kind> {
        let given = self.ballast.as_ref().map_or(Ok(None), Ballast::give_up);
        match given {
            Ok(Some(Kind::Ending)) => {
                tracing::error!("there is little room left for the session file: sessions can only be ended");
            }
            Ok(Some(_)) => tracing::error!(
                "there is no room on the disk for the session file: no session can begin until there is"
            ),
            Ok(None) => tracing::error!("there is no room left for the session file, not even for endings"),
            Err(ref error) => {
                let error = error as &dyn std::error::Error;
                tracing::error!(error, "the ballast of the session file cannot be given up");
            }
        }
        given.ok().flatten()
    }

    /// Holds the ballast if there is room for it; then sessions can begin.
    fn look_for_room(&mut self) {
        self.looked_at = Instant::now();
        let room = self.ballast.as_ref().map_or(Ok(Kind::Addition), Ballast::hold);
        let room = room.unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the ballast of the session file cannot be held");
            Kind::Ending
        });
        let before = self.room.send_replace(Some(room));
        if before != Some(Kind::Addition) && room == Kind::Addition {
            tracing::info!("there is room for the session file again");
        }
    }

    fn room(&self) -> Option<Kind> {
        *self.room.borrow()
    }
}
