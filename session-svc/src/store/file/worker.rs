//! The one thread that writes: takes what has queued up, commits it at once, and only then acknowledges.
//!
//! Invariant: a commit that does not fit on the disk is never begun. It leaves the file as it was, and what ends sessions is
//! written from the reserve.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use chassis::clock::Clock;
use redb::WriteTransaction;
use tokio::sync::watch;

use crate::store::StoreError;

use super::disk::Disk;
use super::open_file::OpenFile;
use super::tables::Tables;
use super::writer::{Acknowledge, EXHAUSTED, FAILING, FULL, Job, Needs, WRITING};
use super::{reserve, store_error};

/// Writes in one commit: keeps a commit, and so the first writer's wait, within milliseconds.
const BATCH: usize = 512;

/// How often expired records are looked for when nobody writes.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How often a commit is tried after one failed: each failure opens the file again, which may take as long as
/// reading it.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// How often free space is looked for while there is none: costs a few system calls.
const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_millis(100);

/// Expired records cleared away by a commit: bounds its duration. More are left to the next.
const SWEPT_AT_ONCE: usize = 512;

/// How often the lack of space is logged at most: at its brink it comes and goes with every session.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Why nothing of a transaction was kept.
enum RolledBack {
    /// There is no room for all of it; the engine goes on.
    Short,
    /// The engine failed and has to be opened anew.
    Failed(StoreError),
}

impl From<StoreError> for RolledBack {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Commits what has queued up.
pub(super) struct Worker {
    failed_at: Option<Instant>,
    looked_at: Option<Instant>,
    logged_at: Option<Instant>,
    file: Arc<OpenFile>,
    latest: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
    state: Arc<AtomicU8>,
}

impl Worker {
    /// A worker that knows whether there is room, so that no lease is given before.
    pub(super) fn new(
        file: Arc<OpenFile>,
        latest: watch::Sender<u64>,
        clock: Arc<dyn Clock>,
        state: Arc<AtomicU8>,
    ) -> Self {
        let mut worker = Self {
            failed_at: None,
            looked_at: None,
            logged_at: None,
            file,
            latest,
            clock,
            state,
        };
        worker.look_for_room();
        worker
    }

    /// Works until nobody can hand anything in.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let timeout = match self.state() {
                WRITING => SWEEP_EVERY,
                FAILING => RETRY_EVERY,
                _ => LOOK_FOR_ROOM_EVERY,
            };
            let first = match jobs.recv_timeout(timeout) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let batch: Vec<Job> = first.into_iter().chain(jobs.try_iter().take(BATCH)).collect();
            if self.failed_at.is_some_and(|at| at.elapsed() < RETRY_EVERY) {
                // Dropped: their callers get the state.
                continue;
            }
            match self.state() {
                FULL | EXHAUSTED => self.write_without_room(batch),
                _ => self.write(batch),
            }
        }
    }

    fn write(&mut self, batch: Vec<Job>) {
        if self.commit(reserve::LEFT_BY_ANY, SWEPT_AT_ONCE, batch, FULL) {
            return;
        }
        self.log_lack(
            "there is no room on the disk for the session file: no session can begin until there is",
        );
        match self.transact(reserve::release) {
            Ok(()) => {}
            Err(RolledBack::Short) => self.log_lack("the reserve of the session file cannot be used"),
            Err(RolledBack::Failed(error)) => return self.recover(&error),
        }
        let state = self.without_room();
        self.settle(state);
    }

    /// Removals first, a few at a time; then what changes; and what needs room if there is some again.
    fn write_without_room(&mut self, batch: Vec<Job>) {
        let (room, rest): (Vec<_>, Vec<_>) = batch.into_iter().partition(|job| job.needs == Needs::Room);
        let (mut changes, mut endings): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|job| job.needs == Needs::Change);
        // Once at least, since it clears away what has expired.
        loop {
            let some = endings
                .drain(..endings.len().min(reserve::ENDINGS_AT_ONCE))
                .collect();
            if !self.commit(0, reserve::ENDINGS_AT_ONCE, some, EXHAUSTED) {
                self.log_lack("there is no room left in the session file, not even for endings");
            }
            if endings.is_empty() {
                break;
            }
        }
        while !changes.is_empty() {
            let some = changes
                .drain(..changes.len().min(reserve::ENDINGS_AT_ONCE))
                .collect();
            self.commit(reserve::LEFT_BY_CHANGES, 0, some, EXHAUSTED);
        }
        let is_time = self
            .looked_at
            .is_none_or(|at| at.elapsed() >= LOOK_FOR_ROOM_EVERY);
        if is_time && self.failed_at.is_none() {
            self.look_for_room();
        }
        if self.state() == WRITING {
            self.write(room);
        }
    }

    /// Holds the reserve if there is room for it, and finds out what can be written if there is none.
    fn look_for_room(&mut self) {
        self.looked_at = Some(Instant::now());
        let held = self.transact(|transaction| {
            let mut left = reserve::LEFT_BY_ANY;
            if !reserve::is_held(transaction)? {
                reserve::hold(transaction)?;
                left = reserve::LEFT_TO_BEGIN_WITH;
            }
            reserve::try_for(transaction, left)
        });
        let state = match held {
            Ok(()) => Ok(WRITING),
            Err(RolledBack::Short) => self.without_room(),
            Err(RolledBack::Failed(error)) => Err(error),
        };
        self.settle(state);
    }

    /// What can be written while there is no room.
    fn without_room(&self) -> Result<u8, StoreError> {
        let tried = self.file.write(|transaction, disk| {
            reserve::try_for(&transaction, reserve::LEFT_BY_CHANGES)?;
            end(transaction, disk, false)
        });
        match tried {
            Ok(()) => Ok(FULL),
            Err(RolledBack::Short) => Ok(EXHAUSTED),
            Err(RolledBack::Failed(error)) => Err(error),
        }
    }

    fn settle(&mut self, state: Result<u8, StoreError>) {
        match state {
            Ok(state) => {
                let was = self.state.swap(state, Ordering::AcqRel);
                if was != WRITING && state == WRITING {
                    tracing::info!("there is room for the session file again");
                }
            }
            Err(error) => self.recover(&error),
        }
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }

    fn log_lack(&mut self, what: &'static str) {
        if self.logged_at.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            self.logged_at = Some(Instant::now());
            tracing::error!("{what}");
        }
    }

    fn recover(&mut self, error: &StoreError) {
        let state = if matches!(error, StoreError::Full) {
            EXHAUSTED
        } else {
            FAILING
        };
        self.state.store(state, Ordering::Release);
        tracing::error!(
            error = error as &dyn std::error::Error,
            "a commit to the session file failed: nothing of it was acknowledged"
        );
        // At once, so that it can be read; the next commit waits a while.
        if let Err(error) = self.file.open_again() {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the session file cannot be opened again yet");
        }
        self.failed_at = Some(Instant::now());
    }

    /// A transaction of our own.
    fn transact(
        &self,
        change: impl Fn(&WriteTransaction) -> Result<(), StoreError>,
    ) -> Result<(), RolledBack> {
        self.file.write(|transaction, disk| {
            change(&transaction)?;
            end(transaction, disk, true)
        })
    }

    /// Commits a batch if `left` pages are left after it. False if not: nothing of it was kept, and the state is
    /// `if_short`, or what a failure made it.
    fn commit(&mut self, left: u32, sweep: usize, batch: Vec<Job>, if_short: u8) -> bool {
        // Their callers wait until the state says why.
        let mut unanswered: Vec<Acknowledge> = Vec::with_capacity(batch.len());
        let outcome = self.file.write(|transaction, disk| {
            let mut tables = Tables::open(&transaction, self.clock.now_ms())?;
            for job in batch {
                unanswered.push((job.apply)(&mut tables)?);
            }
            tables.sweep(sweep)?;
            let (changed, latest) = (tables.changed, tables.latest_event);
            drop(tables);
            if changed && left > 0 && disk.is_tight() {
                reserve::try_for(&transaction, left)?;
            }
            end(transaction, disk, changed)?;
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
                return true;
            }
            Err(RolledBack::Short) => self.state.store(if_short, Ordering::Release),
            Err(RolledBack::Failed(error)) => self.recover(&error),
        }
        false
    }
}

/// Ends a transaction: nothing of it is kept if there is no room for all of it.
fn end(transaction: WriteTransaction, disk: &Disk, changed: bool) -> Result<(), RolledBack> {
    let is_short = disk.is_short();
    if changed && !is_short {
        transaction.commit().map_err(store_error)?;
    } else {
        transaction.abort().map_err(store_error)?;
    }
    if is_short { Err(RolledBack::Short) } else { Ok(()) }
}
