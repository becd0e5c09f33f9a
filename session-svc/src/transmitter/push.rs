//! One push, and what its answer means (RFC 8935, sections 2.2 to 2.4).

use std::time::Duration;

use oidc::{PushAnswer, PushFault, SecurityEventPush, SigningFault};

/// How long a receiver has for an answer: it is to keep the event and answer, and act afterwards.
pub(super) const PUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest that a receiver may ask to be left alone.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(900);

/// Pauses of a receiver that cannot be told: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(300);

/// Refusals that somebody may mend on either side: keys, names and credentials. The same event may be welcome later.
const MENDABLE: [&str; 5] = [
    "invalid_key",
    "invalid_issuer",
    "invalid_audience",
    "authentication_failed",
    "access_denied",
];

/// What became of a push.
#[derive(Debug)]
pub(super) enum Pushed {
    /// Its receiver has it.
    Done,
    /// Its receiver does not want it, and never will.
    Refused(String),
    /// It is to be sent again.
    Again {
        /// Why.
        why: NotTold,
        /// How long the receiver wants to be left alone.
        after: Option<Duration>,
        /// What is at fault.
        fault: Fault,
    },
}

/// Why a receiver was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotTold {
    /// There is no token.
    #[error("the event could not be signed")]
    Unsigned(#[from] SigningFault),
    /// There is no answer.
    #[error(transparent)]
    Unanswered(#[from] PushFault),
    /// It does not want the event now (`err`; RFC 8935, section 2.4).
    #[error("the receiver refused the event: {0}")]
    Refused(String),
    /// It answered something else.
    #[error("the receiver answered with status {0}")]
    Status(u16),
}

/// What is at fault where an event is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Perhaps nothing but the event.
    Event,
    /// The receiver, or we.
    Receiver,
    /// The network: another replica may get there.
    Network,
}

/// Pushes a token at `now`, in seconds since the Unix epoch.
pub(super) async fn push(to: &SecurityEventPush, token: String, now: u64) -> Pushed {
    judge(to.send(token, now).await)
}

fn judge(answer: Result<PushAnswer, PushFault>) -> Pushed {
    let again = |why: NotTold, after, fault| Pushed::Again { why, after, fault };
    let PushAnswer {
        status,
        retry_after_secs,
        code,
    } = match answer {
        Ok(answer) => answer,
        Err(fault) => return again(fault.into(), None, Fault::Network),
    };
    let after = retry_after_secs.map(|secs| Duration::from_secs(secs).min(RETRY_AFTER_MAX));
    match (status, code) {
        (200..=299, _) => Pushed::Done,
        (400, Some(code)) if !MENDABLE.contains(&code.as_str()) => Pushed::Refused(code),
        (400, Some(code)) => again(NotTold::Refused(code), after, Fault::Receiver),
        (401 | 403 | 404 | 408 | 425 | 429, _) => again(NotTold::Status(status), after, Fault::Receiver),
        (400..=499, _) => again(NotTold::Status(status), after, Fault::Event),
        _ => again(NotTold::Status(status), after, Fault::Receiver),
    }
}

/// When a receiver that could not be told is tried again.
#[derive(Debug, Default)]
pub(super) struct BackOff {
    pause: Option<Duration>,
}

impl BackOff {
    /// The pause after one more failure; no less than the receiver asked for.
    pub(super) fn next(&mut self, after: Option<Duration>) -> Duration {
        let pause = self
            .pause
            .map_or(FIRST_PAUSE, |before| (before * 2).min(LAST_PAUSE));
        self.pause = Some(pause);
        pause.max(after.unwrap_or_default())
    }

    /// It could be told.
    pub(super) fn end(&mut self) {
        self.pause = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, code: Option<&str>) -> Pushed {
        judge(Ok(PushAnswer {
            status,
            retry_after_secs: Some(100_000),
            code: code.map(str::to_owned),
        }))
    }

    #[test]
    fn only_an_event_that_nobody_can_mend_is_given_up() {
        for status in [200, 202, 204] {
            assert!(matches!(answer(status, None), Pushed::Done), "{status}");
        }
        for code in ["invalid_request", "invalid_state", "something_new"] {
            let refused = answer(400, Some(code));
            assert!(
                matches!(refused, Pushed::Refused(refused) if refused == code),
                "{code}"
            );
        }
        for (status, code) in [
            (400, Some("invalid_key")),
            (400, Some("invalid_audience")),
            (401, None),
            (404, None),
            (429, None),
            (302, None),
            (500, Some("invalid_request")),
            (503, None),
        ] {
            let Pushed::Again { after, fault, .. } = answer(status, code) else {
                panic!("{status}");
            };
            assert_eq!(after, Some(RETRY_AFTER_MAX));
            assert_eq!(fault, Fault::Receiver, "{status}");
        }
        for status in [400, 413, 415, 422] {
            assert!(matches!(
                answer(status, None),
                Pushed::Again {
                    fault: Fault::Event,
                    ..
                }
            ));
        }
    }

    #[test]
    fn pauses_double_up_to_the_last_and_are_no_shorter_than_asked_for() {
        let mut back_off = BackOff::default();
        let pauses: Vec<Duration> = (0..20).map(|_| back_off.next(None)).collect();
        assert_eq!(
            pauses.get(..3),
            Some(&[FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4][..])
        );
        assert_eq!(pauses.last(), Some(&LAST_PAUSE));
        back_off.end();
        assert_eq!(
            back_off.next(Some(Duration::from_secs(7))),
            Duration::from_secs(7)
        );
    }
}
