//! The seeds of every method, and bytes derived from them.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::collections::BTreeMap;
use std::path::Path;

use session_fuzz::{Mutator, Rpc, rpc};

/// Inputs derived for each method: a few seconds in all.
const DERIVED: usize = 600;

/// The status of a fault of the service.
const INTERNAL: i32 = 13;

fn seeds(of: Rpc) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(of.name());
    let mut files: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Sends all seeds, then what is derived from them; how many of them were answered with which status.
fn look_into(of: Rpc) -> BTreeMap<i32, usize> {
    let seeds = seeds(of);
    let everything: Vec<_> = Rpc::ALL.into_iter().flat_map(self::seeds).collect();
    let mut outcomes = BTreeMap::new();
    let mut mutator = Mutator::new(0x5e55_1011 + of as u64);
    for seed in &seeds {
        *outcomes.entry(rpc(of, seed).code).or_default() += 1;
    }
    for _ in 0..DERIVED {
        let seed = &seeds[mutator.below(seeds.len())];
        // Parts of other methods' messages fit seldom: mostly of the same method's.
        let others = if mutator.below(4) == 0 {
            &everything
        } else {
            &seeds
        };
        let other = &others[mutator.below(others.len())];
        let input = mutator.mutated(seed, other);
        *outcomes.entry(rpc(of, &input).code).or_default() += 1;
    }
    outcomes
}

#[test]
fn whatever_is_sent_is_answered_and_tells_nothing_of_others() {
    for of in Rpc::ALL {
        let outcomes = look_into(of);
        println!("{of:?}: {outcomes:?}");
        assert!(
            !outcomes.contains_key(&INTERNAL),
            "{of:?} found a fault: {outcomes:?}"
        );
        // The seeds reach what lies behind the checks, and what is derived from them reaches the checks.
        assert!(outcomes.contains_key(&0), "{of:?} never succeeded: {outcomes:?}");
        assert!(
            outcomes.keys().any(|code| *code != 0) && outcomes.len() > 1,
            "{of:?} never refused: {outcomes:?}"
        );
    }
}
