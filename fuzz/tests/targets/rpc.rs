//! The seeds of every method, and bytes derived from them.

use fuzz::rpc::Rpc;
use fuzz::{Target, short_run};

/// Derived inputs per method: a few seconds in all.
const DERIVED: usize = 300;

/// The status of a service fault.
const INTERNAL: i32 = 13;

#[test]
fn whatever_is_sent_is_answered_and_tells_nothing_of_others() {
    for of in <Rpc as Target>::ALL {
        let outcomes = short_run(*of, 0x5e55_1011 + *of as u64, DERIVED);
        println!("{of:?}: {outcomes:?}");
        assert!(
            !outcomes.contains_key(&INTERNAL),
            "{of:?} found a fault: {outcomes:?}"
        );
        // The seeds pass the checks, and derived inputs fail them.
        assert!(outcomes.contains_key(&0), "{of:?} never succeeded: {outcomes:?}");
        assert!(
            outcomes.keys().any(|code| *code != 0) && outcomes.len() > 1,
            "{of:?} never refused: {outcomes:?}"
        );
    }
}
