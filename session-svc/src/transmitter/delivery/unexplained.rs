//! Events that their receiver refuses without saying why, each counted on its own: it may be that event alone.

use std::collections::HashMap;

use crate::transmitter::queue::QueueEntry;

/// How often such an event is sent.
const TIMES_MAX: u32 = 10;

/// How often each was refused; of notes that wait alone.
#[derive(Debug, Default)]
pub(super) struct Unexplained(HashMap<QueueEntry, u32>);

impl Unexplained {
    /// Counts a refusal; true once it was refused often enough.
    pub(super) fn is_enough(&mut self, entry: QueueEntry) -> bool {
        let times = self.0.entry(entry).or_default();
        *times += 1;
        *times >= TIMES_MAX
    }

    /// Forgets one, which is gone.
    pub(super) fn forget(&mut self, entry: &QueueEntry) {
        self.0.remove(entry);
    }

    /// Forgets all but these.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&QueueEntry) -> bool) {
        self.0.retain(|entry, _| is_kept(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Name;

    #[test]
    fn of_two_events_that_are_refused_together_each_is_given_up_in_its_turn() {
        let [one, other] = [1, 2].map(|noted_at_ms| QueueEntry {
            noted_at_ms,
            name: Name::FIRST,
        });
        let mut unexplained = Unexplained::default();
        for _ in 1..TIMES_MAX {
            assert!(!unexplained.is_enough(one));
            assert!(!unexplained.is_enough(other));
        }
        assert!(unexplained.is_enough(one));
        assert!(unexplained.is_enough(other));
        unexplained.forget(&one);
        unexplained.keep(|entry| *entry != other);
        assert!(unexplained.0.is_empty());
    }
}
