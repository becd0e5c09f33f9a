//! How many records a process writes in a second.
//!
//! Clients decide how many records there are: each request makes one. The runtime keeps what is written on the node's disk and
//! rotates it rarely, so a flood of requests would otherwise fill the disk, and the pod would be evicted for it.

use std::time::{Duration, Instant};

/// Records written in a second, of each class. The kubelet looks every 10 s for logs to rotate, and rotates at 10 MiB by default:
/// 1,000 records of 1 KiB, three times the usual size, stay below that.
pub(super) const RECORDS_PER_SECOND: u32 = 1_000;

/// The time the bound is for.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Which bound a record counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Requests and what else goes on.
    Ordinary,
    /// Warnings and errors: a flood of the ordinary leaves none of them out.
    Important,
    /// Audit records, written however many there are.
    Audit,
    /// What the queue says of itself, written however much that is.
    Own,
}

/// Counts the records of the current second.
pub(super) struct RecordRate {
    began: Instant,
    ordinary: u32,
    important: u32,
    left_out: u64,
}

impl RecordRate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            ordinary: 0,
            important: 0,
            left_out: 0,
        }
    }

    /// Whether one more record of this class is written now. If not, it counts as left out.
    pub(super) fn admits(&mut self, class: Class, now: Instant) -> bool {
        if self.is_over(now) {
            (self.began, self.ordinary, self.important) = (now, 0, 0);
        }
        let written = match class {
            Class::Ordinary => &mut self.ordinary,
            Class::Important => &mut self.important,
            Class::Audit | Class::Own => return true,
        };
        let is_admitted = *written < RECORDS_PER_SECOND;
        *written += u32::from(is_admitted);
        self.left_out += u64::from(!is_admitted);
        is_admitted
    }

    /// Takes how many were left out since the last report, once a second.
    pub(super) fn report(&mut self, reported: &mut Instant, now: Instant) -> Option<u64> {
        if self.left_out == 0 || now.saturating_duration_since(*reported) < SECOND {
            return None;
        }
        *reported = now;
        Some(std::mem::take(&mut self.left_out))
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) >= SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_records_of_each_class_and_counts_the_others() {
        let start = Instant::now();
        let mut rate = RecordRate::new(start);
        let count =
            |rate: &mut RecordRate, class, now| (0..5_000).filter(|_| rate.admits(class, now)).count();
        assert_eq!(count(&mut rate, Class::Ordinary, start), 1_000);
        assert_eq!(count(&mut rate, Class::Important, start), 1_000);
        assert_eq!(count(&mut rate, Class::Audit, start), 5_000);

        let mut reported = start;
        assert_eq!(rate.report(&mut reported, start + SECOND / 2), None);
        assert_eq!(rate.report(&mut reported, start + SECOND), Some(8_000));
        assert_eq!(rate.report(&mut reported, start + SECOND * 2), None);

        assert_eq!(count(&mut rate, Class::Ordinary, start + SECOND / 2), 0);
        assert_eq!(count(&mut rate, Class::Ordinary, start + SECOND), 1_000);
        assert_eq!(rate.report(&mut reported, start + SECOND * 3 / 2), None);
        assert_eq!(rate.report(&mut reported, start + SECOND * 2), Some(9_000));
    }
}
