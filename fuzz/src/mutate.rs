//! Inputs derived from others, the same ones in every run.

use crate::fields::{Fields, Value};

/// Draws numbers and changes inputs by them (xorshift64*, Marsaglia 2003, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

/// Most changes made to one input.
const CHANGES_MAX: usize = 6;

/// Longest input: a little more than the service reads.
const BYTES_MAX: usize = 300 * 1024;

/// Values at which integers, lengths and protobuf tags turn.
const TURNS: [u8; 12] = [
    0x00, 0x01, 0x08, 0x0a, 0x12, 0x1a, 0x22, 0x7f, 0x80, 0xc0, 0xfe, 0xff,
];

impl Mutator {
    /// The same seed gives the same inputs.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed | 1 }
    }

    /// An input that differs from `input` in a few places, or is made of it and `other`: mostly a message still.
    pub fn mutated(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let messages = (
            input.get(1..).and_then(Fields::read),
            other.get(1..).and_then(Fields::read),
        );
        if let (Some(mut message), Some(other)) = messages
            && self.below(4) != 0
        {
            self.change_fields(&mut message, &other);
            let mut output = vec![input[0]];
            output.extend(message.write());
            output.truncate(BYTES_MAX);
            return output;
        }
        let mut output = input.to_vec();
        for _ in 0..=self.below(CHANGES_MAX) {
            self.change(&mut output, other);
        }
        output.truncate(BYTES_MAX);
        output
    }

    fn change_fields(&mut self, message: &mut Fields, other: &Fields) {
        for _ in 0..=self.below(3) {
            let Fields(fields) = message;
            if fields.is_empty() {
                fields.extend(other.0.iter().cloned());
                continue;
            }
            let at = self.below(fields.len());
            match self.below(7) {
                0 => drop(fields.remove(at)),
                1 => fields.insert(at, fields[at].clone()),
                2 if !other.0.is_empty() => fields.push(other.0[self.below(other.0.len())].clone()),
                3 if !other.0.is_empty() => {
                    let (tag, value) = &other.0[self.below(other.0.len())];
                    if tag & 7 == fields[at].0 & 7 {
                        fields[at].1 = value.clone();
                    }
                }
                4 => fields[at].0 = (1 + self.below(24) as u64) << 3 | fields[at].0 & 7,
                _ => match &mut fields[at].1 {
                    Value::Varint(number) => *number = self.next() >> self.below(64),
                    Value::Bytes(bytes) => {
                        // A message inside keeps being one, mostly; text may stop being text.
                        match Fields::read(bytes) {
                            Some(mut inner) if !inner.0.is_empty() && self.below(3) != 0 => {
                                self.change_fields(&mut inner, other);
                                *bytes = inner.write();
                            }
                            _ => self.change_text(bytes),
                        }
                    }
                },
            }
        }
    }

    fn change_text(&mut self, bytes: &mut Vec<u8>) {
        const PIECES: [&str; 8] = ["", " ", "\0", "\n", "é", "*", "/../", "\u{202e}"];
        let at = self.below(bytes.len() + 1);
        match self.below(5) {
            0 => bytes.truncate(at),
            1 => *bytes = bytes.repeat(1 + self.below(300)),
            2 => bytes.make_ascii_uppercase(),
            3 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            _ => {
                let piece = PIECES[self.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
        }
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

    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}
