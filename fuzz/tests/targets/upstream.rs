//! The seeds of inputs to upstreams, and inputs derived from them.

use fuzz::upstream::{Outcome, Upstream};
use fuzz::{Target as _, short_run};

/// Derived inputs per upstream: some seconds in all, mostly waiting for requests that never end.
const DERIVED: usize = 150;

#[test]
fn whatever_is_sent_reaches_an_upstream_as_one_message_that_is_nobodys_identity() {
    for upstream in Upstream::ALL {
        let outcomes = short_run(*upstream, 0x0df5_0001 + *upstream as u64, DERIVED);
        println!("{upstream:?}: {outcomes:?}");
        // The seeds reach the upstream, and derived inputs fail the checks.
        assert!(
            outcomes.contains_key(&Outcome::PassedOn) && outcomes.len() > 1,
            "{upstream:?}: {outcomes:?}"
        );
    }
}
