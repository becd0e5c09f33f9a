//! Which server the Sentinels hold to be the master, judged from what each said last.
//!
//! A failover is authorised by a majority of the Sentinels and gets a configuration epoch of its own, greater than those before
//! (Redis Sentinel, "Configuration epochs"): of the answers of a majority the one of the greatest epoch counts, and
//! a single Sentinel is believed when it knows a newer epoch, never when it knows an older one.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use crate::store::url::ServerAddress;

/// An answer to an older request says nothing about now. With the longest request, proof and wait for it, an
/// ending is still seen within the second that is promised.
pub(super) const FRESH: Duration = Duration::from_millis(700);

/// What a Sentinel said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentinelAnswer {
    /// When the request was sent: the answer is no newer.
    pub(super) sent_at: Instant,
    /// Epoch of its configuration.
    pub(super) epoch: u64,
    /// The master.
    pub(super) master: ServerAddress,
    /// Whether it is about to promote another server.
    pub(super) replacing: bool,
    /// Replicas it knows of.
    pub(super) replicas: usize,
}

/// What follows from the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuorumVerdict {
    /// Nobody who may be believed says anything.
    Silent,
    /// The master is being replaced; its successor is not elected yet.
    Replacing,
    /// This is the master.
    Master {
        /// Epoch of the configuration it is the master in.
        epoch: u64,
        /// Where it is.
        address: ServerAddress,
        /// Replicas one of them knows of.
        replicas: usize,
        /// Until when at least that is certain, if a majority answered.
        majority_at: Option<Instant>,
    },
}

/// Judges the last answers, one slot for each Sentinel, knowing which master was followed until now.
pub(super) fn judge(
    answers: &[Option<SentinelAnswer>],
    now: Instant,
    followed: Option<(u64, &ServerAddress)>,
) -> QuorumVerdict {
    let fresh = answers.iter().flatten();
    let fresh = fresh.filter(|answer| now.saturating_duration_since(answer.sent_at) < FRESH);
    let mut fresh: Vec<&SentinelAnswer> = fresh.collect();
    fresh.sort_unstable_by_key(|answer| Reverse(answer.sent_at));
    // The majority is as old as the oldest request among its most recent answers.
    let majority_at = fresh.get(answers.len() / 2).map(|answer| answer.sent_at);
    let Some(epoch) = fresh.iter().map(|answer| answer.epoch).max() else {
        return QuorumVerdict::Silent;
    };
    if majority_at.is_none() && followed.is_some_and(|(known, _)| epoch < known) {
        return QuorumVerdict::Silent;
    }
    fresh.retain(|answer| answer.epoch == epoch);
    if fresh.iter().any(|answer| answer.replacing) {
        return QuorumVerdict::Replacing;
    }
    let named = |address: &ServerAddress| fresh.iter().filter(|answer| answer.master == *address).count();
    let is_followed = |address: &ServerAddress| followed.is_some_and(|(_, known)| known == address);
    let best = fresh
        .iter()
        .max_by_key(|answer| (named(&answer.master), is_followed(&answer.master)));
    best.map_or(QuorumVerdict::Silent, |best| {
        let same = fresh.iter().filter(|answer| answer.master == best.master);
        QuorumVerdict::Master {
            epoch,
            address: best.master.clone(),
            replicas: same.map(|answer| answer.replicas).max().unwrap_or(0),
            majority_at,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> ServerAddress {
        ServerAddress {
            host: "10.0.0.1".to_owned(),
            port,
        }
    }

    /// Answers as (milliseconds ago, epoch, port, replacing).
    fn judged(answers: &[Option<(u64, u64, u16, bool)>], followed: Option<(u64, u16)>) -> QuorumVerdict {
        let now = Instant::now() + Duration::from_secs(60);
        let answers: Vec<Option<SentinelAnswer>> = answers
            .iter()
            .map(|answer| {
                answer.map(|(ago, epoch, port, replacing)| SentinelAnswer {
                    sent_at: now - Duration::from_millis(ago),
                    epoch,
                    master: address(port),
                    replacing,
                    replicas: 1,
                })
            })
            .collect();
        let known = followed.map(|(epoch, port)| (epoch, address(port)));
        judge(
            &answers,
            now,
            known.as_ref().map(|(epoch, address)| (*epoch, address)),
        )
    }

    fn master(verdict: &QuorumVerdict) -> Option<(u64, u16, bool)> {
        match verdict {
            QuorumVerdict::Master {
                epoch,
                address,
                majority_at,
                ..
            } => Some((*epoch, address.port, majority_at.is_some())),
            _ => None,
        }
    }

    #[test]
    fn one_voice_of_a_newer_epoch_counts_more_than_two_of_an_older() {
        let heard = [
            Some((1, 5, 1, false)),
            Some((1, 6, 2, false)),
            Some((1, 5, 1, false)),
        ];
        assert_eq!(master(&judged(&heard, Some((5, 1)))), Some((6, 2, true)));
        let alone = [None, Some((1, 6, 2, false)), None];
        assert_eq!(master(&judged(&alone, Some((5, 1)))), Some((6, 2, false)));
    }

    #[test]
    fn an_older_epoch_is_believed_of_a_majority_only() {
        let cut_off = [None, Some((1, 5, 1, false)), None];
        assert_eq!(judged(&cut_off, Some((6, 2))), QuorumVerdict::Silent);
        let set_up_anew = [Some((1, 0, 3, false)), Some((1, 0, 3, false)), None];
        assert_eq!(master(&judged(&set_up_anew, Some((6, 2)))), Some((0, 3, true)));
    }

    #[test]
    fn old_answers_are_nobodys() {
        let old = [
            Some((700, 5, 1, false)),
            Some((699, 5, 1, false)),
            Some((900, 5, 1, false)),
        ];
        assert_eq!(master(&judged(&old, None)), Some((5, 1, false)));
        assert_eq!(judged(&[Some((700, 5, 1, false))], None), QuorumVerdict::Silent);
        assert_eq!(judged(&[None], None), QuorumVerdict::Silent);
    }

    #[test]
    fn a_master_that_is_being_replaced_is_none() {
        let begun = [
            Some((1, 5, 1, true)),
            Some((1, 5, 1, false)),
            Some((1, 5, 1, false)),
        ];
        assert_eq!(judged(&begun, Some((5, 1))), QuorumVerdict::Replacing);
        let done = [
            Some((1, 5, 1, true)),
            Some((1, 6, 2, false)),
            Some((1, 5, 1, false)),
        ];
        assert_eq!(master(&judged(&done, Some((5, 1)))), Some((6, 2, true)));
    }

    #[test]
    fn of_two_names_in_one_epoch_most_voices_decide_and_then_who_is_followed() {
        let most = [
            Some((1, 5, 1, false)),
            Some((1, 5, 2, false)),
            Some((1, 5, 2, false)),
        ];
        assert_eq!(master(&judged(&most, Some((5, 1)))), Some((5, 2, true)));
        let even = [Some((1, 5, 1, false)), Some((1, 5, 2, false))];
        assert_eq!(master(&judged(&even, Some((5, 1)))), Some((5, 1, true)));
        assert_eq!(master(&judged(&even, Some((5, 2)))), Some((5, 2, true)));
    }

    #[test]
    fn a_majority_was_heard_when_its_slowest_was_asked() {
        let QuorumVerdict::Master { majority_at, .. } =
            judged(&[Some((10, 5, 1, false)), Some((200, 5, 1, false)), None], None)
        else {
            panic!("a master");
        };
        let one = judged(&[Some((200, 5, 1, false))], None);
        assert!(majority_at.is_some() && master(&one).is_some_and(|(_, _, heard)| heard));
        assert_eq!(
            master(&judged(&[Some((1, 5, 1, false)), None], None)),
            Some((5, 1, false))
        );
    }
}
