//! The targets of inputs, and a short run.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::Mutator;

/// A target of inputs.
pub trait Target: Copy + Debug + 'static {
    /// The outcome of an input, for counting.
    type Outcome: Ord;

    /// All targets of the kind.
    const ALL: &'static [Self];

    /// The folder with one folder of seeds per target.
    const SEEDS: &'static str;

    /// Sends an input and checks the result; panics when an invariant is broken.
    fn check(self, input: &[u8]) -> Self::Outcome;

    /// An input that differs from `input` in a few places, or mixes it with `other`.
    fn derived(self, mutator: &mut Mutator, input: &[u8], other: &[u8]) -> Vec<u8>;
}

/// Checks a fuzzer's bytes: the first byte chooses the target, the rest is the input.
pub fn fuzz<T: Target>(data: &[u8]) {
    if let Some((first, input)) = data.split_first()
        && let Some(target) = T::ALL.get(usize::from(*first) % T::ALL.len())
    {
        target.check(input);
    }
}

/// Sends all seeds of a target, then `derived` inputs by the generator started at `seed`. Returns how many
/// had which outcome. A failure names the input and the generator's start.
pub fn short_run<T: Target>(target: T, seed: u64, derived: usize) -> BTreeMap<T::Outcome, usize> {
    let own = seeds(target);
    let everything: Vec<_> = T::ALL.iter().copied().flat_map(seeds).collect();
    let mut mutator = Mutator::new(seed);
    let mut outcomes = BTreeMap::new();
    for turn in 0..own.len() + derived {
        let input = own.get(turn).cloned().unwrap_or_else(|| {
            let input = &own[mutator.below(own.len())];
            // Parts of another target's inputs rarely fit, so most come from the same target.
            let others = if mutator.below(4) == 0 { &everything } else { &own };
            let other = &others[mutator.below(others.len())];
            target.derived(&mut mutator, input, other)
        });
        let named = Named {
            target,
            seed,
            turn,
            input: &input,
        };
        *outcomes.entry(target.check(&input)).or_default() += 1;
        drop(named);
    }
    outcomes
}

fn seeds<T: Target>(of: T) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(T::SEEDS)
        .join(format!("{of:?}"));
    let entries = folder.read_dir().unwrap();
    let mut files: Vec<PathBuf> = entries.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Prints the input if its check fails.
struct Named<'a, T: Target> {
    target: T,
    seed: u64,
    turn: usize,
    input: &'a [u8],
}

impl<T: Target> Drop for Named<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self {
                target,
                seed,
                turn,
                input,
            } = self;
            let input = input.escape_ascii();
            eprintln!("{target:?}, input {turn} of the run from seed {seed:#x}:\n{input}");
        }
    }
}
