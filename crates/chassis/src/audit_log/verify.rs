//! Verification of written records: is every chain whole, in order and unchanged?
//!
//! Lines may be those of several files, several processes and other records among them: records are told apart by the name of their
//! chain. What is found of a chain is judged once all lines are read.
//!
//! What no verification can see: records cut off at the end of a chain that nothing refers to, neither a record that closes it, nor the
//! chain of the next process, nor a position known from elsewhere; and, without a key, a chain that somebody made anew.

mod chains;
mod finding;
mod judge;

pub use self::chains::Position;
pub use self::finding::{Finding, Place, Problem};

use self::chains::{Chains, Seen};
use super::chain::ChainKey;
use super::line::{self, Parsed};
use crate::audit::Event;

/// How strict to be.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    /// What may have made the hashes.
    pub keys: Vec<ChainKey>,
    /// Lines come as a collector delivers them: in any order, some twice.
    pub is_collected: bool,
    /// The lines are a part: chains may begin before.
    pub is_partial: bool,
    /// Records known from elsewhere, which have to be there.
    pub anchors: Vec<Position>,
}

/// Reads lines and judges them.
pub struct Verification {
    expected: Expectations,
    chains: Chains,
    findings: Vec<Finding>,
    others: u64,
    /// A line that begins as a record and does not end as one.
    half: Option<Place>,
}

/// What was found.
#[derive(Debug)]
pub struct Verified {
    /// What is not as it should be, or worth knowing.
    pub findings: Vec<Finding>,
    /// The chains, each with the position it was seen up to.
    pub chains: Vec<ChainSummary>,
    /// Lines that are no records.
    pub others: u64,
}

/// One chain as it was seen.
#[derive(Clone, Debug)]
pub struct ChainSummary {
    /// The service that wrote it.
    pub service: String,
    /// How many of its records were seen.
    pub records: u64,
    /// The number of the first.
    pub first: u64,
    /// The last.
    pub last: Position,
    /// When that was recorded.
    pub last_at: String,
    /// Whether it is the record that closes the chain.
    pub is_closed: bool,
}

impl Verified {
    /// Whether nothing is a problem.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(|finding| finding.problem.is_amiss())
    }
}

impl Verification {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(mut expected: Expectations) -> Self {
        if expected.keys.is_empty() {
            expected.keys.push(ChainKey::default());
        }
        Self {
            expected,
            chains: Chains::default(),
            findings: Vec::new(),
            others: 0,
            half: None,
        }
    }

    /// Reads a line, which stands at `place`.
    pub fn read(&mut self, place: &Place, text: &str) {
        let line = match line::parse(text) {
            Parsed::Record(line) => line,
            Parsed::Half => {
                self.judge_half(false);
                self.half = Some(place.clone());
                return;
            }
            Parsed::Broken => return self.find(place, Problem::Unreadable),
            Parsed::Other => {
                self.others += u64::from(!text.trim().is_empty());
                return;
            }
        };
        self.judge_half(line.text("event") == Event::ProcessStart.name());
        let is_genuine = |key: &ChainKey| key.hash(line.hashed.as_bytes()) == line.hash;
        if !self.expected.keys.iter().any(is_genuine) {
            let sequence = line.number("sequence");
            let instance = line.text("instance").to_owned();
            return self.find(place, Problem::Changed { instance, sequence });
        }
        match Seen::of(&line, place) {
            Some(seen) => self.add(place, line.text("instance"), line.text("service"), seen),
            None => self.find(place, Problem::Unreadable),
        }
    }

    /// Half a record is what a killed process leaves: nothing comes behind it but the chain of the next one.
    fn judge_half(&mut self, is_last: bool) {
        if let Some(place) = self.half.take() {
            let problem = if is_last {
                Problem::CutOff
            } else {
                Problem::Unreadable
            };
            self.find(&place, problem);
        }
    }

    fn add(&mut self, place: &Place, instance: &str, service: &str, seen: Seen) {
        let sequence = seen.sequence;
        let after = self.chains.add(instance, service, seen);
        if let Some(after) = after.filter(|after| *after >= sequence && !self.expected.is_collected) {
            let instance = instance.to_owned();
            self.find(
                place,
                Problem::OutOfOrder {
                    instance,
                    sequence,
                    after,
                },
            );
        }
    }

    fn find(&mut self, place: &Place, problem: Problem) {
        self.findings.push(Finding {
            place: Some(place.clone()),
            problem,
        });
    }

    /// Judges what was read.
    #[must_use]
    pub fn judged(mut self) -> Verified {
        self.judge_half(true);
        self.chains.sort();
        judge::all(&self.chains, &self.expected, &mut self.findings);
        Verified {
            chains: self.chains.summaries(),
            findings: self.findings,
            others: self.others,
        }
    }
}

#[cfg(test)]
mod tests;
