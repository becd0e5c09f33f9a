//! Derived inputs, the same in every run.

/// Draws random numbers and changes inputs by them (xorshift64*, Marsaglia 2003, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

/// The most changes to one input.
const CHANGES_MAX: usize = 6;

/// Longest input: a little more than the services read.
pub(crate) const BYTES_MAX: usize = 300 * 1024;

/// Boundary values of integers, lengths and protobuf tags.
const TURNS: [u8; 12] = [
    0x00, 0x01, 0x08, 0x0a, 0x12, 0x1a, 0x22, 0x7f, 0x80, 0xc0, 0xfe, 0xff,
];

impl Mutator {
    /// The same seed gives the same inputs.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed | 1 }
    }

    /// An input that differs from `input` in a few places, or mixes it with `other`.
    pub fn bytes(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut output = input.to_vec();
        for _ in 0..=self.below(CHANGES_MAX) {
            self.change(&mut output, other);
        }
        output.truncate(BYTES_MAX);
        output
    }

    /// As [`Mutator::bytes`], with words typical for this kind of text.
    pub fn text(&mut self, input: &[u8], other: &[u8], words: &[&str]) -> Vec<u8> {
        let mut output = input.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(output.len() + 1);
            let end = (at + self.below(24)).min(output.len());
            match self.below(6) {
                0 => drop(output.splice(at..at, words[self.below(words.len())].bytes())),
                1 => drop(output.splice(at..end, words[self.below(words.len())].bytes())),
                2 => drop(output.drain(at..end)),
                3 => {
                    let again = output[at..end].to_vec();
                    output.splice(at..at, again);
                }
                4 => {
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(64)).min(other.len());
                    output.splice(at..at, other[from..to].iter().copied());
                }
                _ => self.change(&mut output, other),
            }
        }
        output.truncate(BYTES_MAX);
        output
    }

    fn change(&mut self, output: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(output.len() + 1);
        let end = (at + 1 + self.below(32)).min(output.len());
        match self.below(9) {
            0 => output.truncate(at),
            1 => drop(output.drain(at.min(end)..end)),
            2 => {
                let byte = TURNS[self.below(TURNS.len())];
                output.insert(at, byte);
            }
            3 if at < output.len() => output[at] ^= 1 << self.below(8),
            4 if at < output.len() => output[at] = TURNS[self.below(TURNS.len())],
            5 if at < end => {
                let repeated = output[at..end].repeat(1 + self.below(200));
                output.splice(at..at, repeated);
            }
            6 => {
                let from = self.below(other.len() + 1);
                output.truncate(at);
                output.extend_from_slice(&other[from..]);
            }
            7 => {
                let drawn: Vec<u8> = (0..self.below(64))
                    .map(|_| self.next().to_le_bytes()[3])
                    .collect();
                output.splice(at..at, drawn);
            }
            _ => output.extend_from_slice(other),
        }
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = usize::try_from(self.next() >> 32).unwrap_or(0);
        drawn % bound.max(1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}
