//! How old the news of a stream is.
//!
//! That bytes arrive says nothing about when they were sent, and clocks of two machines say little. So the stream is asked, again and
//! again, how far it is told: the answer comes behind everything that had happened when the service received the question, thus
//! behind everything that had happened when it was asked here. A service of an earlier release is not asked: there an arrival counts
//! as the moment itself.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use crate::v1::{FollowSessionsRequest, WatchSessionsRequest};

/// Questions asked while news may grow as old as it may: two of three may be lost.
const QUESTIONS: u32 = 3;

/// Questions on their way at once. There are more only where nothing is heard for longer than a stream may be silent.
const ON_THEIR_WAY_MAX: usize = 8;

/// News that was late counts again when it is younger than this part of what it may be, so that it does not come and go.
const TRUSTED_AGAIN_PARTS: u32 = 2;

/// Heartbeats of a stream that cannot be asked after which it is dead: two of them may be late.
const HEARTBEATS: u32 = 3;

/// Longest interval of heartbeats that is believed; the service tells none that is longer.
const HEARTBEAT_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// How far one stream is told.
pub(super) struct Hearing {
    /// How old news may be.
    oldest: Duration,
    /// None where the service takes no questions.
    questions: Option<mpsc::Sender<FollowSessionsRequest>>,
    asked: VecDeque<(u64, Instant)>,
    last_number: u64,
    ask_at: Instant,
    /// When anything arrived last.
    arrived: Instant,
    /// Everything that happened before this was told; none while that is too long ago.
    current: Option<Instant>,
}

impl Hearing {
    /// Of a stream that is asked: the questions to send, the first of which says what is watched.
    pub(super) fn asking(
        oldest: Duration,
        watch: WatchSessionsRequest,
    ) -> (Self, ReceiverStream<FollowSessionsRequest>) {
        let (questions, sent) = mpsc::channel(ON_THEIR_WAY_MAX);
        let mut hearing = Self {
            questions: Some(questions),
            ..Self::of_arrivals(oldest)
        };
        hearing.ask(Some(watch));
        (hearing, ReceiverStream::new(sent))
    }

    /// Of a stream that cannot be asked.
    pub(super) fn of_arrivals(oldest: Duration) -> Self {
        let now = Instant::now();
        Self {
            oldest,
            questions: None,
            asked: VecDeque::new(),
            last_number: 0,
            ask_at: now,
            arrived: now,
            current: None,
        }
    }

    /// When it is to be asked again; none if it cannot be.
    pub(super) fn ask_at(&self) -> Option<Instant> {
        self.questions.as_ref().map(|_| self.ask_at)
    }

    /// Asks how far it is told. What finds no room is not asked: then nothing has been answered for long.
    pub(super) fn ask(&mut self, watch: Option<WatchSessionsRequest>) {
        let now = Instant::now();
        self.ask_at = now + self.oldest / QUESTIONS;
        let number = self.last_number + 1;
        let question = FollowSessionsRequest { watch, number };
        if let Some(Ok(())) = self
            .questions
            .as_ref()
            .map(|questions| questions.try_send(question))
        {
            self.last_number = number;
            self.asked.push_back((number, now));
        }
    }

    /// A heartbeat told when the next one comes. A stream that is asked goes by its questions.
    pub(super) fn beats_every(&mut self, interval: Duration) {
        if self.questions.is_none() {
            let silence = interval.min(HEARTBEAT_INTERVAL_MAX) * HEARTBEATS;
            self.oldest = self.oldest.max(silence);
        }
    }

    /// Something arrived.
    pub(super) fn arrives(&mut self) {
        self.arrived = Instant::now();
    }

    /// A heartbeat arrived, with the number of the question it answers. Gives the moment before which everything that happened has been
    /// told, if that says so and is no longer ago than it may be, and whether it was longer ago before.
    pub(super) fn hears(&mut self, number: u64) -> Option<(Instant, bool)> {
        let now = Instant::now();
        let told = if self.questions.is_some() {
            let (_, asked) = *self.asked.iter().find(|(asked, _)| *asked == number)?;
            self.asked.retain(|(other, _)| *other > number);
            asked
        } else {
            now
        };
        let trusted = match self.current {
            Some(_) => self.oldest,
            None => self.oldest / TRUSTED_AGAIN_PARTS,
        };
        if now.duration_since(told) > trusted {
            return None;
        }
        Some((told, self.current.replace(told).is_none()))
    }

    /// When the stream is dead if nothing arrives until then.
    pub(super) fn silent_at(&self) -> Instant {
        self.arrived + self.oldest
    }

    /// When what is told becomes too old if nothing newer is told until then; none if it is.
    pub(super) fn late_at(&self) -> Option<Instant> {
        self.current.map(|current| current + self.oldest)
    }

    /// What is told is too old.
    pub(super) fn is_late(&mut self) {
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
    async fn news_is_as_old_as_the_question_it_answers() {
        let asked = Instant::now();
        let (mut hearing, mut questions) = Hearing::asking(OLDEST, WatchSessionsRequest::default());
        let first = questions.next().await.unwrap();
        assert!((first.watch.is_some(), first.number) == (true, 1));
        assert_eq!(hearing.ask_at(), Some(asked + OLDEST / QUESTIONS));
        after(100).await;
        hearing.ask(None);
        assert_eq!(hearing.hears(0), None, "it answers nothing");
        assert_eq!(hearing.hears(1), Some((asked, true)));
        after(200).await;
        let second = asked + Duration::from_millis(100);
        assert_eq!(hearing.hears(2), Some((second, false)));
        assert_eq!(hearing.hears(2), None, "once");
        assert_eq!(hearing.late_at(), Some(second + OLDEST));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_too_late_counts_again_when_it_is_clearly_younger() {
        let (mut hearing, _questions) = Hearing::asking(OLDEST, WatchSessionsRequest::default());
        assert!(hearing.hears(1).is_some());
        for (late, counts) in [(300, true), (301, false)] {
            hearing.ask(None);
            after(late).await;
            assert_eq!(hearing.hears(hearing.last_number).is_some(), counts, "{late}");
        }
        hearing.is_late();
        for (late, counts) in [(151, false), (150, true)] {
            hearing.ask(None);
            after(late).await;
            let told = hearing.hears(hearing.last_number);
            assert_eq!(told.map(|(_, again)| again), counts.then_some(true), "{late}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_not_asked_may_be_silent_for_three_of_its_heartbeats() {
        let ms = Duration::from_millis;
        let began = Instant::now();
        for (told, silent) in [(50, ms(300)), (1_000, ms(3_000)), (3_600_000, ms(30_000))] {
            let mut hearing = Hearing::of_arrivals(OLDEST);
            assert_eq!(
                hearing.silent_at(),
                began + OLDEST,
                "as configured while nothing is told"
            );
            hearing.beats_every(ms(told));
            assert_eq!(hearing.hears(0), Some((began, true)));
            assert_eq!(hearing.silent_at(), began + silent, "{told}");
            assert_eq!(hearing.late_at(), Some(began + silent), "{told}");
        }
        let (mut asking, _questions) = Hearing::asking(OLDEST, WatchSessionsRequest::default());
        asking.beats_every(ms(1_000));
        assert_eq!(asking.silent_at(), began + OLDEST);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_asked_than_may_be_on_its_way() {
        let (mut hearing, mut questions) = Hearing::asking(OLDEST, WatchSessionsRequest::default());
        for _ in 0..2 * ON_THEIR_WAY_MAX {
            hearing.ask(None);
        }
        assert_eq!(hearing.asked.len(), ON_THEIR_WAY_MAX);
        questions.next().await.unwrap();
        hearing.ask(None);
        assert_eq!(hearing.last_number, ON_THEIR_WAY_MAX as u64 + 1);
    }
}
