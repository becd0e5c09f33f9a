//! Bounds the number of records that a process writes in a second.
//!
//! Each request writes a record, so clients decide how many there are. The runtime keeps records on the
//! node's disk and rotates them rarely. Without a bound, a flood fills the disk, and the pod is evicted.

use std::time::{Duration, Instant};

/// Most records of a class in a second. The kubelet checks log sizes every 10 s and rotates at 10 MiB by
/// default. With 1 KiB a record, three times the usual size, 10 s of records stay below that.
pub(super) const RECORDS_PER_SECOND: u32 = 1_000;

/// The period of the bound.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// The class of a record. The first two classes have separate bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Access records and other information.
    Ordinary,
    /// Warnings and errors: a flood of ordinary records displaces none of them.
    Important,
    /// Audit records: no bound.
    Audit,
    /// Records of the log queue itself: no bound.
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

    /// Whether another record of this class may be written now. If not, it is counted as left out.
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

    /// Returns, once a second, the number of records left out since the last report.
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
