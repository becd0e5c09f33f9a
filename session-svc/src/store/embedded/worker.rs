//! Commits what has queued up at once, and only then acknowledges.
//!
//! Invariant: a commit that finds no room leaves the file as it was. The ballast is given up for the next one, in which no session
//! begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use chassis::clock::Clock;
use tokio::sync::watch;

use crate::store::StoreError;

use super::ballast::{Ballast, Held};
use super::error::{FileError, store_error};
use super::open_file::OpenFile;
use super::tables::Tables;
use super::writer::{Acknowledge, EXHAUSTED, FAILING, FULL, Job, Kind, WRITING};

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
    ballast: Option<Ballast>,
    latest: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
    pub(super) state: Arc<AtomicU8>,
}

impl Worker {
    /// A worker that knows whether there is room, so that no lease is given before.
    pub(super) fn new(
        file: Arc<OpenFile>,
        ballast: Option<Ballast>,
        held: Held,
        latest: watch::Sender<u64>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            failed_at: None,
            looked_at: Instant::now(),
            file,
            ballast,
            latest,
            clock,
            state: Arc::new(AtomicU8::new(state_with(held))),
        }
    }

    /// Works until nobody can hand anything in.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let (timeout, most) = match self.state() {
                WRITING => (SWEEP_EVERY, BATCH),
                FAILING => (RETRY_EVERY, BATCH),
                _ => (RETRY_EVERY, BATCH_WITHOUT_ROOM),
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
            if self.state() != WRITING && self.looked_at.elapsed() >= RETRY_EVERY {
                self.look_for_room();
            }
        }
    }

    /// Commits those of a batch that the state admits. The others are dropped, and their callers get the state.
    pub(super) fn commit(&mut self, batch: Vec<Job>) {
        let state = self.state();
        let admitted = batch.into_iter().filter(|job| match state {
            FULL => job.kind < Kind::Addition,
            EXHAUSTED => job.kind == Kind::Ending,
            _ => true,
        });
        let sweep = match state {
            FULL | EXHAUSTED => BATCH_WITHOUT_ROOM,
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
                transaction.commit().map_err(store_error)?;
            } else {
                transaction.abort().map_err(store_error)?;
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
        let mut held = if is_full { self.give_up() } else { None };
        while let Err(error) = self.file.open_again() {
            let is_full = matches!(error, FileError::Full { .. });
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the session file cannot be opened again yet");
            held = if is_full { self.give_up() } else { None };
            if held.is_none() {
                break;
            }
        }
        let state = match held {
            Some(held) => state_with(held),
            None if is_full => EXHAUSTED,
            None => FAILING,
        };
        self.state.store(state, Ordering::Release);
        // With more room than before the next commit need not wait.
        self.failed_at = held.is_none().then(Instant::now);
        self.looked_at = Instant::now();
    }

    /// Gives up ballast; `None` if there is none left.
    fn give_up(&self) -> Option<Held> {
        match self.ballast.as_ref().map_or(Ok(None), Ballast::give_up) {
            Ok(held) => {
                match held {
                    Some(Held::Half) => tracing::error!(
                        "there is no room on the disk for the session file: no session can begin until there is"
                    ),
                    Some(_) => tracing::error!(
                        "there is little room left for the session file: sessions can only be ended"
                    ),
                    None => {
                        tracing::error!("there is no room left for the session file, not even for endings")
                    }
                }
                held
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the ballast of the session file cannot be given up");
                None
            }
        }
    }

    /// Holds the ballast if there is room for it; then sessions can begin.
    fn look_for_room(&mut self) {
        self.looked_at = Instant::now();
        let held = self.ballast.as_ref().map_or(Ok(Held::Whole), Ballast::hold);
        let held = held.unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the ballast of the session file cannot be held");
            Held::Nothing
        });
        let state = state_with(held);
        let was = self.state.swap(state, Ordering::AcqRel);
        if was != WRITING && state == WRITING {
            tracing::info!("there is room for the session file again");
        }
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }
}

/// What can be written with so much ballast.
fn state_with(held: Held) -> u8 {
    match held {
        Held::Whole => WRITING,
        Held::Half => FULL,
        Held::Nothing => EXHAUSTED,
    }
}
