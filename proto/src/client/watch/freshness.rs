//! Tracks how old the state of a stream is.
//!
//! Arriving bytes do not show when they were sent, and clocks of two machines differ. So the client sends
//! numbered questions. A heartbeat answers each one after every event from before the question was sent.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use crate::v1::{FollowSessionsRequest, WatchSessionsRequest};

/// Questions sent within the greatest age: two of three answers may be late.
const QUESTIONS: u32 = 3;

/// Most questions that wait to be sent. More would mean that the stream is blocked longer than it may be silent.
const IN_FLIGHT_MAX: usize = 8;

/// A late stream is current again when its state is younger than the greatest age divided by this (hysteresis).
const TRUSTED_AGAIN_PARTS: u32 = 2;

/// The freshness of one stream.
pub(super) struct Freshness {
    /// The greatest age of the state.
    oldest: Duration,
    questions: mpsc::Sender<FollowSessionsRequest>,
    pending: VecDeque<(u64, Instant)>,
    last_number: u64,
    /// When the next question is due.
    pub(super) question_at: Instant,
    /// When anything last arrived.
    arrived: Instant,
    /// Everything before this moment was delivered; `None` if that is too long ago.
    current: Option<Instant>,
}

impl Freshness {
    /// The freshness of a new stream, and its questions. The first one says what to watch.
    pub(super) fn new(
        oldest: Duration,
        watch: WatchSessionsRequest,
    ) -> (Self, ReceiverStream<FollowSessionsRequest>) {
        let (questions, sent) = mpsc::channel(IN_FLIGHT_MAX);
        let now = Instant::now();
        let mut freshness = Self {
            oldest,
            questions,
            pending: VecDeque::new(),
            last_number: 0,
            question_at: now,
            arrived: now,
            current: None,
        };
        freshness.send_question(Some(watch));
        (freshness, ReceiverStream::new(sent))
    }

    /// Sends a question, unless too many wait to be sent.
    pub(super) fn send_question(&mut self, watch: Option<WatchSessionsRequest>) {
        let now = Instant::now();
        self.question_at = now + self.oldest / QUESTIONS;
        let number = self.last_number + 1;
        let question = FollowSessionsRequest { watch, number };
        if self.questions.try_send(question).is_ok() {
            self.last_number = number;
            self.pending.push_back((number, now));
        }
    }

    /// Records that something arrived.
    pub(super) fn record_arrival(&mut self) {
        self.arrived = Instant::now();
    }

    /// Processes an event; a heartbeat has the number of its question. If the state is now newer and fresh,
    /// returns the moment up to which it is complete, and whether the stream was late.
    pub(super) fn heartbeat(&mut self, number: u64) -> Option<(Instant, bool)> {
        let now = Instant::now();
        let (_, complete_at) = *self.pending.iter().find(|(other, _)| *other == number)?;
        self.pending.retain(|(other, _)| *other > number);
        let trusted = match self.current {
            Some(_) => self.oldest,
            None => self.oldest / TRUSTED_AGAIN_PARTS,
        };
        if now.duration_since(complete_at) > trusted {
            return None;
        }
        Some((complete_at, self.current.replace(complete_at).is_none()))
    }

    /// When the stream is dead unless something arrives.
    pub(super) fn silent_at(&self) -> Instant {
        self.arrived + self.oldest
    }

    /// When the state becomes too old unless a newer one arrives; `None` if it already is.
    pub(super) fn late_at(&self) -> Option<Instant> {
        self.current.map(|current| current + self.oldest)
    }

    /// Records that the state is too old.
    pub(super) fn mark_late(&mut self) {
        self.current = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    const OLDEST: Duration = Duration::from_millis(300);

    async fn after(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_state_is_as_old_as_the_question_a_heartbeat_answers() {
        let sent = Instant::now();
        let (mut freshness, mut questions) = Freshness::new(OLDEST, WatchSessionsRequest::default());
        let first = questions.next().await.unwrap();
        assert!((first.watch.is_some(), first.number) == (true, 1));
        assert_eq!(freshness.question_at, sent + OLDEST / QUESTIONS);
        after(100).await;
        freshness.send_question(None);
        assert_eq!(freshness.heartbeat(0), None, "it answers nothing");
        assert_eq!(freshness.heartbeat(1), Some((sent, true)));
        after(200).await;
        let second = sent + Duration::from_millis(100);
        assert_eq!(freshness.heartbeat(2), Some((second, false)));
        assert_eq!(freshness.heartbeat(2), None, "once");
        assert_eq!(freshness.late_at(), Some(second + OLDEST));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_stream_is_current_again_when_its_state_is_clearly_younger() {
        let (mut freshness, _questions) = Freshness::new(OLDEST, WatchSessionsRequest::default());
        assert!(freshness.heartbeat(1).is_some());
        for (late, counts) in [(300, true), (301, false)] {
            freshness.send_question(None);
            after(late).await;
            assert_eq!(
                freshness.heartbeat(freshness.last_number).is_some(),
                counts,
                "{late}"
            );
        }
        freshness.mark_late();
        for (late, counts) in [(151, false), (150, true)] {
            freshness.send_question(None);
            after(late).await;
            let complete_at = freshness.heartbeat(freshness.last_number);
            assert_eq!(
                complete_at.map(|(_, again)| again),
                counts.then_some(true),
                "{late}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_questions_are_sent_than_may_be_in_flight() {
        let (mut freshness, mut questions) = Freshness::new(OLDEST, WatchSessionsRequest::default());
        for _ in 0..2 * IN_FLIGHT_MAX {
            freshness.send_question(None);
        }
        assert_eq!(freshness.pending.len(), IN_FLIGHT_MAX);
        questions.next().await.unwrap();
        freshness.send_question(None);
        assert_eq!(freshness.last_number, IN_FLIGHT_MAX as u64 + 1);
    }
}
