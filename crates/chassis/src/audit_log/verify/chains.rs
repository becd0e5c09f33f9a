//! What was seen of each chain.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::super::line::{Hash, Line, parse_hash};
use super::ChainSummary;
use super::finding::Place;
use crate::audit::Event;

/// One record of a chain, by its number and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The name of the chain.
    pub instance: String,
    /// The record's number there.
    pub sequence: u64,
    /// Its hash, in hexadecimal digits.
    pub hash: String,
}

/// What is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("has to be INSTANCE:SEQUENCE:HASH, as a verification prints it")]
pub struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let parts: Vec<&str> = text.split(':').collect();
        let [instance, sequence, hash] = parts.as_slice() else {
            return Err(NoPosition);
        };
        Ok(Self {
            instance: (*instance).to_owned(),
            sequence: sequence.parse().map_err(|_no_number| NoPosition)?,
            hash: parse_hash(hash).map(|_| (*hash).to_owned()).ok_or(NoPosition)?,
        })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.instance, self.sequence, self.hash)
    }
}

/// A record that was seen: what its neighbours are held against.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) sequence: u64,
    pub(super) hash: Hash,
    pub(super) previous: Hash,
    pub(super) place: Place,
    pub(super) is_close: bool,
    /// How many records were dropped before it.
    pub(super) lost: u64,
    /// The record of another chain that it goes on from.
    pub(super) goes_on_from: Option<Position>,
    at: String,
}

impl Seen {
    /// What a line's neighbours are held against; none if it lacks something of it.
    pub(super) fn of(line: &Line<'_>, place: &Place) -> Option<Self> {
        let goes_on_from = line.number("previous.sequence").map(|sequence| Position {
            instance: line.text("previous.instance").to_owned(),
            sequence,
            hash: line.text("previous.hash").to_owned(),
        });
        Some(Self {
            sequence: line.number("sequence")?,
            hash: line.hash,
            previous: parse_hash(line.text("prev"))?,
            place: place.clone(),
            is_close: line.text("event") == Event::ProcessStop.name(),
            lost: line.number("lost").unwrap_or_default(),
            goes_on_from,
            at: line.text("timestamp").to_owned(),
        })
    }
}

/// One chain.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenChain {
    service: String,
    pub(super) records: Vec<Seen>,
}

impl SeenChain {
    /// The record of a number.
    pub(super) fn at(&self, sequence: u64) -> Option<&Seen> {
        let found = self
            .records
            .binary_search_by_key(&sequence, |seen| seen.sequence)
            .ok()?;
        self.records.get(found)
    }
}

/// All of them, by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains(BTreeMap<String, SeenChain>);

impl Chains {
    /// Adds a record; gives the number of the one before it in the order of reading.
    pub(super) fn add(&mut self, instance: &str, service: &str, seen: Seen) -> Option<u64> {
        if !self.0.contains_key(instance) {
            self.0.insert(instance.to_owned(), SeenChain::default());
        }
        let chain = self.0.get_mut(instance)?;
        if chain.service.is_empty() {
            service.clone_into(&mut chain.service);
        }
        let before = chain.records.last().map(|last| last.sequence);
        chain.records.push(seen);
        before
    }

    /// Puts the records of each in the order of their numbers; one that came twice, word for word, counts once.
    pub(super) fn sort(&mut self) {
        for chain in self.0.values_mut() {
            chain.records.sort_by_key(|seen| seen.sequence);
            chain
                .records
                .dedup_by(|one, other| (one.sequence, one.hash) == (other.sequence, other.hash));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &SeenChain)> {
        self.0.iter().map(|(instance, chain)| (instance.as_str(), chain))
    }

    pub(super) fn get(&self, instance: &str) -> Option<&SeenChain> {
        self.0.get(instance)
    }

    /// For who asked.
    pub(super) fn summaries(&self) -> Vec<ChainSummary> {
        let summary = |(instance, chain): (&str, &SeenChain)| {
            let (first, last) = (chain.records.first()?, chain.records.last()?);
            Some(ChainSummary {
                service: chain.service.clone(),
                records: chain.records.len() as u64,
                first: first.sequence,
                last: Position {
                    instance: instance.to_owned(),
                    sequence: last.sequence,
                    hash: base16ct::lower::encode_string(&last.hash),
                },
                last_at: last.at.clone(),
                is_closed: last.is_close,
            })
        };
        self.iter().filter_map(summary).collect()
    }
}
