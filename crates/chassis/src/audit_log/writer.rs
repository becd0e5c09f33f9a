//! The thread of the audit log: takes what was recorded, chains it, writes it, and keeps trying while it cannot.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::chain::Chain;
use super::file::AuditFile;
use super::stream::{Checkpoints, Shared, own};
use crate::audit::{Event, Outcome};

/// How long after a write that failed it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// A buffer that was larger than this in a burst is given back.
const KEPT_BYTES: usize = 64 * 1024;

/// Takes a line if there is room.
pub(super) type Offer = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// Where lines go.
pub(super) enum Output {
    /// Among the log records, by whoever takes a line if there is room.
    Log(Offer),
    /// A file of their own.
    File(AuditFile),
}

/// What the thread works with.
pub(super) struct Writer {
    shared: Arc<Shared>,
    chain: Chain,
    output: Output,
    /// Lines that have their number.
    lines: Vec<u8>,
    /// How much of them is written.
    written: usize,
    is_failing: bool,
    checkpoints: Checkpoints,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        chain: Chain,
        output: Output,
        checkpoint_interval: Duration,
    ) -> Self {
        Self {
            shared,
            chain,
            output,
            lines: Vec::new(),
            written: 0,
            is_failing: false,
            checkpoints: Checkpoints::begin(checkpoint_interval),
        }
    }

    /// Gives the next record its number.
    pub(super) fn chain(&mut self, fields: &[u8]) {
        self.chain.append(&mut self.lines, fields);
    }

    /// Works until the process stops.
    pub(super) fn run(mut self) {
        self.until_written();
        loop {
            let due = self.shared.due(self.patience());
            for fields in due
                .records
                .split(|byte| *byte == b'\n')
                .filter(|fields| !fields.is_empty())
            {
                self.chain(fields);
            }
            if due.lost > 0 {
                self.chain(&own(
                    Event::AuditLoss,
                    Outcome::Failure,
                    json!({ "lost": due.lost }),
                ));
            }
            let is_checkpoint = self.checkpoints.take();
            if is_checkpoint {
                self.chain(&own(Event::AuditCheckpoint, Outcome::Success, json!({})));
            }
            if due.is_stopping {
                self.chain(&own(Event::ProcessStop, Outcome::Success, json!({})));
            }
            self.until_written();
            if due.is_to_reopen {
                self.reopen();
            }
            if is_checkpoint || due.is_to_reopen {
                self.tell_position();
            }
            if due.is_stopping {
                break;
            }
        }
        if let Output::File(file) = &mut self.output
            && let Err(error) = file.sync()
        {
            eprintln!("the end of the audit log may not be on its disk: {error}");
        }
        self.tell_position();
        self.shared.is_done();
    }

    fn patience(&self) -> Duration {
        let file = match &self.output {
            Output::File(file) => file.due_in(),
            Output::Log(_) => Duration::MAX,
        };
        file.min(self.checkpoints.due_in())
    }

    /// Writes all lines, however long it takes; what is recorded meanwhile waits. A process that ends before leaves this thread
    /// behind, which [`super::stream::AuditLog::stop`] tells.
    fn until_written(&mut self) {
        loop {
            match self.write().and_then(|()| self.keep()) {
                Ok(()) => return self.works(),
                Err(error) => self.fails(&error),
            }
            std::thread::sleep(RETRY_INTERVAL);
            self.elsewhere_if_moved();
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(rest) = self.lines.get(self.written..).filter(|rest| !rest.is_empty()) {
            let line = rest
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(rest.len(), |end| end + 1);
            let count = match &mut self.output {
                Output::File(file) => match file.write(rest)? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => count,
                },
                Output::Log(offer) => match offer(&rest[..line]) {
                    true => line,
                    false => return Err(io::Error::other("nobody reads standard output")),
                },
            };
            let lines = rest[..count].iter().filter(|byte| **byte == b'\n').count();
            self.shared.measures.written.inc_by(lines as u64);
            self.written += count;
        }
        self.lines.clear();
        self.lines.shrink_to(KEPT_BYTES);
        self.written = 0;
        Ok(())
    }

    fn keep(&mut self) -> io::Result<()> {
        match &mut self.output {
            Output::File(file) => file.keep(),
            Output::Log(_) => Ok(()),
        }
    }

    /// Where the file that refuses has been moved away, the line that is half in it goes into the new one as a whole.
    fn elsewhere_if_moved(&mut self) {
        let begun_at = self.lines[..self.written].iter().rposition(|byte| *byte == b'\n');
        if let Output::File(file) = &mut self.output
            && file.is_moved()
            && file.open_again().is_ok()
        {
            self.written = begun_at.map_or(0, |end| end + 1);
        }
    }

    fn reopen(&mut self) {
        if let Output::File(file) = &mut self.output
            && let Err(error) = file.reopen()
        {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                error,
                "the audit log's file cannot be opened again: the one before stays in use"
            );
        }
    }

    fn fails(&mut self, error: &io::Error) {
        self.shared.measures.failures.inc();
        if !std::mem::replace(&mut self.is_failing, true) {
            if let Some(condition) = self.shared.condition.get() {
                condition.unmet("records cannot be written");
            }
            let error = error as &dyn std::error::Error;
            tracing::error!(
                error,
                "audit records cannot be written: they wait, and are lost if this lasts"
            );
        }
    }

    fn works(&mut self) {
        if std::mem::replace(&mut self.is_failing, false) {
            if let Some(condition) = self.shared.condition.get() {
                condition.met();
            }
            tracing::info!("audit records are written again");
        }
    }

    /// Tells in the log, which goes another way than the file, how far the chain is: whoever cuts the file's end off would have to
    /// change both.
    fn tell_position(&self) {
        if matches!(self.output, Output::File(_)) {
            let (sequence, hash) = (self.chain.sequence(), self.chain.last_hash());
            let instance = self.chain.instance();
            tracing::info!(instance, sequence, hash, "audit log");
        }
    }
}
