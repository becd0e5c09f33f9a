//! The seeds of all inputs to the edge, and inputs derived from them.

use fuzz::edge::{Entry, Outcome};
use fuzz::{Target as _, short_run};

/// Derived inputs per entry: a few seconds in all.
const DERIVED: usize = 75;

#[test]
fn whatever_is_sent_makes_no_fault_and_no_session_that_was_not_asked_for() {
    for entry in Entry::ALL {
        let outcomes = short_run(*entry, 0xed6e_0001 + *entry as u64, DERIVED);
        println!("{entry:?}: {outcomes:?}");
        // The seeds pass the checks, and derived inputs fail them.
        assert!(
            outcomes.contains_key(&Outcome::Accepted) && outcomes.len() > 1,
            "{entry:?}: {outcomes:?}"
        );
    }
}
