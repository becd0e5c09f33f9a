//! The judgement on chains of which every record is genuine by itself.

use super::Expectations;
use super::chains::{Chains, Position, Seen, SeenChain};
use super::finding::{Finding, Place, Problem};

/// Judges all chains.
pub(super) fn all(chains: &Chains, expected: &Expectations, findings: &mut Vec<Finding>) {
    for (instance, chain) in chains.iter() {
        beginning(instance, chain, expected, findings);
        for neighbours in chain.records.windows(2) {
            if let [one, next] = neighbours {
                link(instance, one, next, findings);
            }
        }
        for seen in &chain.records {
            notes(instance, seen, chains, findings);
        }
        end(instance, chain, findings);
    }
    for known in &expected.anchors {
        anchor(known, chains, findings);
    }
}

fn found(findings: &mut Vec<Finding>, place: Option<&Place>, problem: Problem) {
    findings.push(Finding {
        place: place.cloned(),
        problem,
    });
}

/// Whether the first records are there: where the lines are a part, a record that is known from elsewhere may be the one before them.
fn beginning(instance: &str, chain: &SeenChain, expected: &Expectations, findings: &mut Vec<Finding>) {
    let Some(first) = chain.records.first().filter(|first| first.sequence > 1) else {
        return;
    };
    if !expected.is_partial {
        let (from, to) = (1, first.sequence - 1);
        let instance = instance.to_owned();
        found(
            findings,
            Some(&first.place),
            Problem::Missing { instance, from, to },
        );
    }
}

fn link(instance: &str, one: &Seen, next: &Seen, findings: &mut Vec<Finding>) {
    let owned = || instance.to_owned();
    let sequence = next.sequence;
    let problem = if sequence == one.sequence {
        Problem::Twofold {
            instance: owned(),
            sequence,
        }
    } else if sequence > one.sequence + 1 {
        Problem::Missing {
            instance: owned(),
            from: one.sequence + 1,
            to: sequence - 1,
        }
    } else if next.previous != one.hash {
        Problem::Unlinked {
            instance: owned(),
            sequence,
        }
    } else if one.is_close {
        Problem::BehindClose {
            instance: owned(),
            sequence,
        }
    } else {
        return;
    };
    found(findings, Some(&next.place), problem);
}

/// What a record says of others: that some were dropped, and which chain came before.
fn notes(instance: &str, seen: &Seen, chains: &Chains, findings: &mut Vec<Finding>) {
    if seen.lost > 0 {
        let (instance, count) = (instance.to_owned(), seen.lost);
        found(findings, Some(&seen.place), Problem::Lost { instance, count });
    }
    let Some(known) = &seen.goes_on_from else {
        return;
    };
    let problem = match chains.get(&known.instance) {
        None => Problem::ChainMissing { known: known.clone() },
        Some(before) if is_in(known, before) => return,
        Some(_) => Problem::NotThere { known: known.clone() },
    };
    found(findings, Some(&seen.place), problem);
}

fn is_in(known: &Position, chain: &SeenChain) -> bool {
    chain
        .at(known.sequence)
        .is_some_and(|seen| base16ct::lower::encode_string(&seen.hash) == known.hash)
}

fn end(instance: &str, chain: &SeenChain, findings: &mut Vec<Finding>) {
    if let Some(last) = chain.records.last().filter(|last| !last.is_close) {
        let (instance, sequence) = (instance.to_owned(), last.sequence);
        found(findings, Some(&last.place), Problem::Open { instance, sequence });
    }
}

/// A record that is known from elsewhere is among those that are there, or the one before the first of them.
fn anchor(known: &Position, chains: &Chains, findings: &mut Vec<Finding>) {
    let goes_on = |chain: &SeenChain| {
        chain.records.first().is_some_and(|first| {
            first.sequence == known.sequence + 1
                && base16ct::lower::encode_string(&first.previous) == known.hash
        })
    };
    let chain = chains.get(&known.instance);
    if !chain.is_some_and(|chain| is_in(known, chain) || goes_on(chain)) {
        found(findings, None, Problem::NotThere { known: known.clone() });
    }
}
