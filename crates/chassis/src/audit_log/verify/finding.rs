//! What a verification finds, in words for people and for programs.

use std::fmt;
use std::sync::Arc;

use super::chains::Position;

/// Where a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, if it is at one place.
    pub place: Option<Place>,
    /// What.
    pub problem: Problem,
}

/// What is not as it should be, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A line that was a record is none any more.
    Unreadable,
    /// The last line of a file is the beginning of a record.
    CutOff,
    /// A record does not have the hash it closes with, by no key that was given.
    Changed {
        /// Its chain, as the line says.
        instance: String,
        /// Its number, as the line says.
        sequence: Option<u64>,
    },
    /// A record stands behind one of a later number, or behind itself.
    OutOfOrder {
        /// Its chain.
        instance: String,
        /// Its number.
        sequence: u64,
        /// The number before it.
        after: u64,
    },
    /// Records are missing.
    Missing {
        /// Their chain.
        instance: String,
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// Two records have one number.
    Twofold {
        /// Their chain.
        instance: String,
        /// The number.
        sequence: u64,
    },
    /// A record goes on from another one than stands before it.
    Unlinked {
        /// Its chain.
        instance: String,
        /// Its number.
        sequence: u64,
    },
    /// Records stand behind the one that closes the chain.
    BehindClose {
        /// The chain.
        instance: String,
        /// The first of them.
        sequence: u64,
    },
    /// A record that is known from elsewhere is not there, or is another one.
    NotThere {
        /// Which.
        known: Position,
    },
    /// A chain goes on from one that is not among the lines.
    ChainMissing {
        /// The last record of the one that is not there.
        known: Position,
    },
    /// The service dropped records, because those before could not be written.
    Lost {
        /// The chain.
        instance: String,
        /// How many.
        count: u64,
    },
    /// Nothing closes the chain: its process still runs, was killed, or its last records are cut off.
    Open {
        /// The chain.
        instance: String,
        /// The number of the last record that is there.
        sequence: u64,
    },
}

impl Problem {
    /// Whether the records cannot be relied on. What is not amiss is worth knowing.
    #[must_use]
    pub fn is_amiss(&self) -> bool {
        !matches!(
            self,
            Self::CutOff | Self::ChainMissing { .. } | Self::Lost { .. } | Self::Open { .. }
        )
    }

    /// A word for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::CutOff => "cut_off",
            Self::Changed { .. } => "changed",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::Missing { .. } => "missing",
            Self::Twofold { .. } => "twofold",
            Self::Unlinked { .. } => "unlinked",
            Self::BehindClose { .. } => "behind_close",
            Self::NotThere { .. } => "not_there",
            Self::ChainMissing { .. } => "chain_missing",
            Self::Lost { .. } => "lost",
            Self::Open { .. } => "open",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("what was a record cannot be read any more"),
            Self::CutOff => {
                f.write_str("the last record is not whole: the process stopped while it wrote it")
            }
            Self::Changed {
                instance,
                sequence: Some(sequence),
            } => write!(
                f,
                "record {sequence} of {instance} was changed, or chained with another key"
            ),
            Self::Changed {
                instance,
                sequence: None,
            } => {
                write!(
                    f,
                    "a record of {instance} was changed, or chained with another key"
                )
            }
            Self::OutOfOrder {
                instance,
                sequence,
                after,
            } => write!(f, "record {sequence} of {instance} stands behind record {after}"),
            Self::Missing { instance, from, to } if from == to => {
                write!(f, "record {from} of {instance} is missing")
            }
            Self::Missing { instance, from, to } => {
                write!(f, "records {from} to {to} of {instance} are missing")
            }
            Self::Twofold { instance, sequence } => {
                write!(
                    f,
                    "there are two records {sequence} of {instance}: one was put in"
                )
            }
            Self::Unlinked { instance, sequence } => write!(
                f,
                "record {sequence} of {instance} goes on from another record than the one before it"
            ),
            Self::BehindClose { instance, sequence } => write!(
                f,
                "record {sequence} of {instance} stands behind the one that closes the chain"
            ),
            Self::NotThere { known } => write!(
                f,
                "record {} of {} is known from elsewhere and not there, or another one",
                known.sequence, known.instance
            ),
            Self::ChainMissing { known } => write!(
                f,
                "the records of {} up to {}, which the next process went on from, are not in these files",
                known.instance, known.sequence
            ),
            Self::Lost { instance, count } => write!(
                f,
                "{instance} dropped {count} records, because those before could not be written"
            ),
            Self::Open { instance, sequence } => write!(
                f,
                "nothing closes {instance} behind record {sequence}: its process runs, was killed, or its last records are cut off"
            ),
        }
    }
}
