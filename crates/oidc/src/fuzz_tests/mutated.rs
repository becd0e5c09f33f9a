//! Mutates seeds in short, deterministic runs. The crate `ssf` uses it too.

use std::path::Path;

const RUNS: u64 = 4_000;

/// Fragments that are difficult for parsers.
const DICTIONARY: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    ".",
    "..",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "e30",
    "\"iss\":",
    "\"alg\":\"none\"",
    "\"crit\":[]",
    "https://evil.example",
    "http://127.0.0.1",
    "\u{feff}",
    "AAAAAAAAAAAAAAAA",
];

/// A small deterministic generator (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).expect("fits")
    }
}

fn seeds(parser: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(parser);
    let entries = std::fs::read_dir(&folder).expect("the folder of seeds");
    let mut seeds: Vec<_> = entries
        .map(|entry| std::fs::read(entry.expect("an entry").path()).expect("a seed"))
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 3, "{parser}");
    seeds
}

fn mutated(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => {
                let word = DICTIONARY[random.below(DICTIONARY.len())].bytes();
                bytes.splice(at..at, word);
            }
            3 => {
                let end = (at + random.below(16)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                let end = (at + random.below(32)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

/// Prints the input if the target panics.
struct Named<'a>(&'a [u8]);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was {}", self.0.escape_ascii());
        }
    }
}

/// Runs a target over a parser's seeds and their mutations.
pub(crate) fn run(parser: &str, target: impl Fn(&[u8])) {
    let seeds = seeds(parser);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let target = |input: &[u8]| {
        let _named = Named(input);
        target(input);
    };
    seeds.iter().for_each(|seed| target(seed));
    for _ in 0..RUNS {
        let (seed, other) = (random.below(seeds.len()), random.below(seeds.len()));
        target(&mutated(&seeds[seed], &seeds[other], &mut random));
    }
}
