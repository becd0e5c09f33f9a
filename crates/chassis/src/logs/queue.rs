//! The queue of log records. A separate thread writes them.
//!
//! Invariants: code that logs never waits for the reader of the log. The queue is bounded; dropped records
//! are counted, and reported once there is capacity again. The number of records a second is bounded
//! (`rate`). The thread writes the records of a few milliseconds at once: one write is cheaper than many.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus::{IntCounter, Registry};
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::rate::{Class, RECORDS_PER_SECOND, RecordRate, SECOND};
use crate::audit::{self, AuditRecord, Event, Outcome};

/// Bytes that may wait: about ten thousand records, which a service under full load writes within a second.
const CAPACITY: usize = 4 * 1024 * 1024;

/// Bytes of [`CAPACITY`] that only warnings and audit records may use: a flood of other records drops none of them.
const RESERVED: usize = 1024 * 1024;

/// The target of the queue's own records.
const OWN_TARGET: &str = module_path!();

/// How long records gather before they are written.
const GATHERING: Duration = Duration::from_millis(5);

/// A buffer that grew larger than this is released after a burst.
const KEPT: usize = 64 * 1024;

/// Records that wait to be written; clones share them.
#[derive(Clone)]
pub(crate) struct LogQueue(Arc<SharedQueue>);

struct SharedQueue {
    pending: Mutex<PendingRecords>,
    more: Condvar,
    idle: Condvar,
    unwritten: UnwrittenRecords,
}

struct PendingRecords {
    records: Vec<u8>,
    /// Whether a batch is being written.
    writing: bool,
    /// Log records dropped but not reported yet.
    dropped: u64,
    /// Audit records dropped but not reported yet.
    dropped_audit: u64,
    rate: RecordRate,
}

/// Counts records that were not written; clones share the counts.
#[derive(Clone)]
pub(crate) struct UnwrittenRecords {
    dropped: IntCounter,
    left_out: IntCounter,
    dropped_audit: IntCounter,
}

impl UnwrittenRecords {
    /// Makes the counters and adds them to the metrics.
    ///
    /// # Errors
    /// The name is registered already.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name, help| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        Ok(Self {
            dropped: counter(
                "log_records_dropped_total",
                "Log records dropped because standard output was not read.",
            )?,
            left_out: counter(
                "log_records_left_out_total",
                "Log records left out because they exceeded the limit per second.",
            )?,
            dropped_audit: counter(
                "audit_records_lost_total",
                "Audit records dropped because earlier records could not be written.",
            )?,
        })
    }
}

impl PendingRecords {
    fn new() -> Self {
        Self {
            records: Vec::new(),
            writing: false,
            dropped: 0,
            dropped_audit: 0,
            rate: RecordRate::new(Instant::now()),
        }
    }
}

impl LogQueue {
    /// Starts the thread `name`, which writes to `out`.
    ///
    /// # Errors
    /// The system cannot start another thread.
    pub(crate) fn start(
        name: &str,
        out: impl Write + Send + 'static,
        unwritten: UnwrittenRecords,
    ) -> io::Result<Self> {
        let shared = Arc::new(SharedQueue {
            pending: Mutex::new(PendingRecords::new()),
            more: Condvar::new(),
            idle: Condvar::new(),
            unwritten,
        });
        let writer = Arc::clone(&shared);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || writer.write_to(out))?;
        Ok(Self(shared))
    }

    /// Adds a whole line.
    pub(super) fn add(&self, line: &[u8], record: &Metadata<'_>) {
        self.0.add(line, class(record));
    }

    /// Waits until all records are written, for at most `timeout`. Returns whether they are.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let pending = self.0.pending();
        let is_busy = |pending: &mut PendingRecords| pending.writing || !pending.records.is_empty();
        let waited = self.0.idle.wait_timeout_while(pending, timeout, is_busy);
        waited.is_ok_and(|(_, waited)| !waited.timed_out())
    }
}

impl SharedQueue {
    fn pending(&self) -> MutexGuard<'_, PendingRecords> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, record: &[u8], class: Class) {
        let mut pending = self.pending();
        if !pending.rate.admits(class, Instant::now()) {
            self.unwritten.left_out.inc();
            return;
        }
        let capacity = match class {
            Class::Ordinary => CAPACITY - RESERVED,
            Class::Important | Class::Audit | Class::Own => CAPACITY,
        };
        if pending.records.len() + record.len() > capacity {
            match class {
                Class::Audit => {
                    pending.dropped_audit += 1;
                    self.unwritten.dropped_audit.inc();
                }
                Class::Ordinary | Class::Important | Class::Own => {
                    pending.dropped += 1;
                    self.unwritten.dropped.inc();
                }
            }
            return;
        }
        let was_empty = pending.records.is_empty();
        pending.records.extend_from_slice(record);
        drop(pending);
        if was_empty {
            self.more.notify_one();
        }
    }

    /// Writes records until the process ends.
    fn write_to(&self, mut out: impl Write) {
        let mut batch = Vec::new();
        let mut reported = Instant::now();
        loop {
            let pending = self.pending();
            // Wait at most a second: dropped records are reported even if no other record arrives.
            let some = self
                .more
                .wait_timeout_while(pending, SECOND, |pending| pending.records.is_empty());
            let is_empty = some.is_ok_and(|(pending, _)| pending.records.is_empty());
            if !is_empty {
                std::thread::sleep(GATHERING);
            }
            let mut pending = self.pending();
            std::mem::swap(&mut pending.records, &mut batch);
            pending.writing = true;
            drop(pending);
            if out.write_all(&batch).and_then(|()| out.flush()).is_err() {
                let lost = batch.iter().filter(|byte| **byte == b'\n').count();
                self.unwritten.dropped.inc_by(lost as u64);
            }
            batch.clear();
            batch.shrink_to(KEPT);
            let mut pending = self.pending();
            let dropped = std::mem::take(&mut pending.dropped);
            let dropped_audit = std::mem::take(&mut pending.dropped_audit);
            let left_out = pending.rate.report(&mut reported, Instant::now());
            drop(pending);
            if let Some(left_out) = left_out {
                tracing::warn!(
                    left_out,
                    limit = RECORDS_PER_SECOND,
                    "log records were left out: they exceeded the limit per second"
                );
            }
            if dropped > 0 {
                tracing::warn!(dropped, "log records were dropped: standard output was not read");
            }
            if dropped_audit > 0 {
                AuditRecord {
                    count: Some(dropped_audit),
                    ..AuditRecord::new(Event::AuditLoss, Outcome::Failure)
                }
                .write();
            }
            self.pending().writing = false;
            self.idle.notify_all();
        }
    }
}

/// Turns a record of the plain format into one line. Each record arrives in one piece.
pub(crate) struct RecordWriter<'a> {
    shared: &'a SharedQueue,
    class: Class,
}

impl Write for RecordWriter<'_> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let content = record.strip_suffix(b"\n").unwrap_or(record).iter();
        let line = content.map(|byte| if byte.is_ascii_control() { b' ' } else { *byte });
        self.shared
            .add(&line.chain([b'\n']).collect::<Vec<_>>(), self.class);
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = RecordWriter<'a>;

    fn make_writer(&'a self) -> RecordWriter<'a> {
        RecordWriter {
            shared: &self.0,
            class: Class::Ordinary,
        }
    }

    fn make_writer_for(&'a self, record: &Metadata<'_>) -> RecordWriter<'a> {
        RecordWriter {
            shared: &self.0,
            class: class(record),
        }
    }
}

/// The rate limit that a record counts against.
fn class(record: &Metadata<'_>) -> Class {
    match record.target() {
        audit::TARGET => Class::Audit,
        OWN_TARGET => Class::Own,
        _ if *record.level() <= Level::WARN => Class::Important,
        _ => Class::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tracing::Dispatch;
    use tracing_subscriber::fmt;

    use super::*;

    /// An output that accepts nothing until the test allows it, and then returns what it accepted.
    struct Pipe {
        open: mpsc::Receiver<()>,
        taken: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.open.recv();
            let _ = self.taken.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start(pipe: Pipe) -> LogQueue {
        LogQueue::start("logs", pipe, UnwrittenRecords::new(&Registry::new()).unwrap()).unwrap()
    }

    #[test]
    fn a_line_end_or_escape_sequence_in_a_value_does_not_leave_its_record() {
        let (let_through, open) = mpsc::channel();
        let (taken, written) = mpsc::channel();
        drop(let_through);
        let queue = start(Pipe { open, taken });
        let record = b"INFO denied error=x\nINFO signed in\x1b[2J\r\n";
        assert_eq!(queue.make_writer().write(record).unwrap(), record.len());
        assert!(queue.flush(Duration::from_secs(60)));
        let text: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(text, b"INFO denied error=x INFO signed in [2J \n");
    }

    #[test]
    fn lost_audit_records_are_counted_and_the_count_is_a_record() {
        let (let_through, open) = mpsc::channel();
        let (taken, written) = mpsc::channel();
        let queue = start(Pipe { open, taken });
        let record = vec![b'x'; 64 * 1024];
        for _ in 0..2 * CAPACITY / record.len() {
            queue.0.add(&record, Class::Audit);
        }
        let lost = queue.0.unwritten.dropped_audit.get();
        assert!(lost > 0, "nothing was dropped");
        assert_eq!(queue.0.unwritten.dropped.get(), 0);
        assert_eq!(queue.0.pending().dropped_audit, lost);
        drop(let_through);
        assert!(queue.flush(Duration::from_secs(60)));
        assert_eq!(queue.0.pending().dropped_audit, 0);
        drop(written);
    }

    #[test]
    fn what_finds_no_room_is_dropped_but_a_change_is_recorded_while_the_rest_is_not() {
        let (let_through, open) = mpsc::channel();
        let (taken, written) = mpsc::channel();
        let queue = start(Pipe { open, taken });
        let subscriber = fmt().with_ansi(false).with_writer(queue.clone()).finish();
        let long = "x".repeat(64 * 1024);
        tracing::dispatcher::with_default(&Dispatch::new(subscriber), || {
            // One batch may be in the writer already; another one fills the queue.
            for _ in 0..2 * CAPACITY / long.len() {
                tracing::info!("ordinary {long}");
            }
            tracing::info!(target: audit::TARGET, "a session ended");
            tracing::warn!("something is wrong");
        });
        let dropped = queue.0.unwritten.dropped.get();
        assert!(dropped > 0, "nothing was dropped");

        drop(let_through);
        assert!(queue.flush(Duration::from_secs(60)));
        let text: String = written
            .try_iter()
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .collect();
        let ordinary = text.matches("ordinary").count();
        assert_eq!(ordinary as u64 + dropped, (2 * CAPACITY / long.len()) as u64);
        assert!(text.contains("a session ended") && text.contains("something is wrong"));
    }

    #[test]
    fn a_flood_leaves_ordinary_records_out_and_counts_them() {
        const FLOOD: u64 = 20_000;
        let (let_through, open) = mpsc::channel();
        let (taken, written) = mpsc::channel();
        drop(let_through);
        let queue = start(Pipe { open, taken });
        let subscriber = fmt().with_ansi(false).with_writer(queue.clone()).finish();
        tracing::dispatcher::with_default(&Dispatch::new(subscriber), || {
            for _ in 0..FLOOD {
                tracing::info!(target: "edge", "request");
            }
            tracing::warn!(target: "edge", "something is wrong");
            tracing::info!(target: audit::TARGET, "a session ended");
        });
        assert!(queue.flush(Duration::from_secs(60)));
        let text: String = written
            .try_iter()
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .collect();
        let requests = text.matches("request").count() as u64;
        assert!(queue.0.unwritten.left_out.get() > 0, "every record was written");
        assert_eq!(requests + queue.0.unwritten.left_out.get(), FLOOD);
        assert!(text.contains("a session ended") && text.contains("something is wrong"));
    }
}
