//! The queue of audit records and the thread that chains and writes them.
//!
//! Invariants
//! - Whoever records never waits: what waits is bounded, what finds no room is counted, and the count is a record.
//! - A record that has its number is written or, when the process ends before the disk takes it, told on standard error.
//! - Records that gather within 20 ms are written in one piece.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::chain::Chain;
use super::file::{AuditFile, LastRecord};
use super::measures::Measures;
use super::settings::{AuditSettings, Destination};
use super::writer::{Output, Writer};
use crate::audit::{Event, Outcome};
use crate::clock;
use crate::random;
use crate::readiness::{Condition, Readiness, Weight};

/// Bytes that may wait: some ten thousand records.
const CAPACITY: usize = 4 * 1024 * 1024;

/// How long records gather before they are written: those of one sign-in, and of others beside it, wake the thread once.
const GATHERING: Duration = Duration::from_millis(20);

/// The log's condition in what readiness says.
const CONDITION: &str = "audit_log";

/// Why there is no audit log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The file.
    #[error("the file {} of AUDIT_LOG cannot be opened", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There can be no further thread.
    #[error("the thread of the audit log cannot be started")]
    Thread(#[source] io::Error),
    /// The chain has no name.
    #[error(transparent)]
    Random(#[from] random::NoRandomness),
    /// The metrics.
    #[error("the metrics of the audit log cannot be made")]
    Metrics(#[from] prometheus::Error),
}

/// The process whose chain it is.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// The service's name.
    pub(crate) service: &'static str,
    /// Its release.
    pub(crate) version: &'static str,
    /// A hash of its settings, without secrets.
    pub(crate) config_digest: String,
}

/// The audit log of this process; clones share it.
#[derive(Clone)]
pub(crate) struct AuditLog(Arc<Shared>);

/// What those who record and the thread share.
pub(super) struct Shared {
    pending: Mutex<Pending>,
    more: Condvar,
    done: Condvar,
    pub(super) measures: Measures,
    pub(super) condition: OnceLock<Condition>,
}

#[derive(Default)]
struct Pending {
    /// Fields of records, each closed by a line end.
    records: Vec<u8>,
    /// Records that found no room since they were last told.
    lost: u64,
    is_stopping: bool,
    is_to_reopen: bool,
    is_done: bool,
}

/// What the thread is to do.
pub(super) struct Due {
    pub(super) records: Vec<u8>,
    pub(super) lost: u64,
    pub(super) is_stopping: bool,
    pub(super) is_to_reopen: bool,
}

impl AuditLog {
    /// Starts the log of a process with the record of its start; none if it is off. `offer` takes lines for standard output, and says
    /// whether it had room.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn start(
        settings: &AuditSettings,
        process: &Process,
        offer: impl FnMut(&[u8]) -> bool + Send + 'static,
    ) -> Result<Option<Self>, OpenError> {
        let (output, last) = match &settings.destination {
            Destination::Off => return Ok(None),
            Destination::Stdout => (Output::Log(Box::new(offer)), None),
            Destination::File(path) => {
                let opened = AuditFile::open(path).map_err(|source| OpenError::File {
                    path: path.clone(),
                    source,
                });
                let (file, last) = opened?;
                (Output::File(file), last)
            }
        };
        let instance = base16ct::lower::encode_string(&random::bytes::<8>()?);
        let chain = Chain::begin(settings.key.clone(), process.service, &instance);
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            more: Condvar::new(),
            done: Condvar::new(),
            measures: Measures::new()?,
            condition: OnceLock::new(),
        });
        let mut writer = Writer::new(Arc::clone(&shared), chain, output, settings.checkpoint_interval);
        writer.chain(&start(process, settings.key.algorithm(), last.as_ref()));
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.run())
            .map_err(OpenError::Thread)?;
        Ok(Some(Self(shared)))
    }

    /// Adds a record: its fields, as members of a JSON object on one line.
    pub(crate) fn add(&self, fields: &[u8]) {
        let mut pending = self.0.pending();
        if pending.records.len() + fields.len() >= CAPACITY {
            pending.lost += 1;
            self.0.measures.lost.inc();
            return;
        }
        let was_empty = pending.records.is_empty();
        pending.records.extend_from_slice(fields);
        pending.records.push(b'\n');
        drop(pending);
        if was_empty {
            self.0.more.notify_one();
        }
    }

    /// Adds what is measured to the metrics, and whether records can be written to what readiness says.
    ///
    /// # Errors
    /// A name is taken.
    pub(crate) fn report_to(
        &self,
        registry: &prometheus::Registry,
        readiness: &Readiness,
    ) -> Result<(), prometheus::Error> {
        self.0.measures.register(registry)?;
        let condition = readiness.condition(CONDITION, Weight::Informative);
        condition.met();
        let _ = self.0.condition.set(condition);
        Ok(())
    }

    /// Opens the file again: somebody has moved it away.
    pub(crate) fn reopen(&self) {
        self.0.pending().is_to_reopen = true;
        self.0.more.notify_one();
    }

    /// Closes the chain; waits until all of it is written, for at most `timeout`.
    pub(crate) fn stop(&self, timeout: Duration) {
        let mut pending = self.0.pending();
        pending.is_stopping = true;
        self.0.more.notify_one();
        let waited = self
            .0
            .done
            .wait_timeout_while(pending, timeout, |pending| !pending.is_done);
        let is_done = waited.is_ok_and(|(pending, _)| pending.is_done);
        if !is_done {
            eprintln!("the audit log could not be written to its end: its last records are lost");
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do, at most `patience`, and takes it.
    pub(super) fn due(&self, patience: Duration) -> Due {
        let is_idle = |pending: &mut Pending| {
            pending.records.is_empty() && pending.lost == 0 && !(pending.is_stopping || pending.is_to_reopen)
        };
        let waited = self.more.wait_timeout_while(self.pending(), patience, is_idle);
        let is_stopping = waited.is_ok_and(|(pending, _)| pending.is_stopping);
        if !is_stopping {
            std::thread::sleep(GATHERING);
        }
        let mut pending = self.pending();
        Due {
            records: std::mem::take(&mut pending.records),
            lost: std::mem::take(&mut pending.lost),
            is_stopping: pending.is_stopping,
            is_to_reopen: std::mem::take(&mut pending.is_to_reopen),
        }
    }

    /// Says that all is written.
    pub(super) fn is_done(&self) {
        self.pending().is_done = true;
        self.done.notify_all();
    }
}

/// When the next checkpoint is due.
pub(super) struct Checkpoints {
    interval: Duration,
    last: Instant,
}

impl Checkpoints {
    pub(super) fn begin(interval: Duration) -> Self {
        Self {
            interval,
            last: Instant::now(),
        }
    }

    pub(super) fn due_in(&self) -> Duration {
        self.interval.saturating_sub(self.last.elapsed())
    }

    /// Whether one is due, once.
    pub(super) fn take(&mut self) -> bool {
        let is_due = self.due_in().is_zero();
        if is_due {
            self.last = Instant::now();
        }
        is_due
    }
}

/// The fields of a record of the log itself.
pub(super) fn own(event: Event, outcome: Outcome, more: Value) -> Vec<u8> {
    let mut fields = Map::new();
    fields.insert("timestamp".to_owned(), clock::timestamp().into());
    fields.insert("event".to_owned(), event.name().into());
    fields.insert("outcome".to_owned(), outcome.name().into());
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    super::line::members(&Value::Object(fields))
}

fn start(process: &Process, algorithm: &str, last: Option<&LastRecord>) -> Vec<u8> {
    let mut more = json!({
        "service.version": process.version,
        "algorithm": algorithm,
        "config_digest": process.config_digest,
    });
    if let (Some(last), Value::Object(more)) = (last, &mut more) {
        more.insert("previous.instance".to_owned(), last.instance.clone().into());
        more.insert("previous.sequence".to_owned(), last.sequence.into());
        more.insert("previous.hash".to_owned(), last.hash.clone().into());
    }
    own(Event::ProcessStart, Outcome::Success, more)
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
