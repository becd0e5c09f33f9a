//! Reads of sessions over one call to a replica (`ReadSessions`) instead of a call for each.
//!
//! A call costs its head, its stream and its tasks on both sides: several times what reading a session costs. Questions that are
//! there together leave in one frame here, and their answers come in one. A line is that one call: the first question opens it, and
//! the first one after its end opens it again.
//!
//! Invariants
//! - Whoever asks is answered, or told that the line is over: no question waits on a line that ended.
//! - A question nobody waits for any more is not sent, and nothing of it is remembered.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::service;
use crate::error;
use crate::v1::{ErrorReason, ReadSessionsRequest, ReadSessionsResponse};

/// How long a replica that takes no such call is not offered one again: one of an older release, or with a list of callers that
/// does not name the method.
const NOT_TAKEN: Duration = Duration::from_secs(60);

/// The line to one replica from one scheduler.
#[derive(Debug)]
pub(super) struct Reads {
    channel: Channel,
    line: Mutex<Option<Arc<Line>>>,
}

/// What came of a question.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was answered.
    Answered(ReadSessionsResponse),
    /// The line could not be opened, or ended first.
    Failed(Status),
    /// The replica takes no questions: they have to be calls of their own.
    NotTaken,
}

/// One call, while it is open and after.
#[derive(Debug, Default)]
struct Line(Mutex<Questions>);

#[derive(Debug, Default)]
struct Questions {
    last_number: u64,
    unsent: VecDeque<ReadSessionsRequest>,
    waiting: BTreeMap<u64, oneshot::Sender<Outcome>>,
    /// Wakes what sends.
    sending: Option<Waker>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Open,
    Ended,
    NotTakenUntil(Instant),
}

/// Somebody waits for an answer.
struct Waiting {
    line: Arc<Line>,
    number: u64,
    outcome: oneshot::Receiver<Outcome>,
}

/// What is sent on a line.
struct Sent(Arc<Line>);

impl Reads {
    /// Opens nothing yet.
    pub(super) fn over(channel: Channel) -> Self {
        Self {
            channel,
            line: Mutex::default(),
        }
    }

    /// Asks a question; its number is chosen here. Panics outside a tokio runtime.
    pub(super) async fn ask(&self, question: ReadSessionsRequest) -> Outcome {
        match self.put(question) {
            Some(mut waiting) => {
                let outcome = (&mut waiting.outcome).await;
                outcome.unwrap_or_else(|_| Outcome::Failed(ended()))
            }
            None => Outcome::NotTaken,
        }
    }

    /// None if the replica takes no questions.
    fn put(&self, question: ReadSessionsRequest) -> Option<Waiting> {
        let mut line = lock(&self.line);
        loop {
            if let Some(last) = &*line {
                let mut questions = lock(&last.0);
                match questions.phase {
                    Phase::Open => return Some(Waiting::of(last, &mut questions, question)),
                    Phase::NotTakenUntil(until) if Instant::now() < until => return None,
                    Phase::NotTakenUntil(_) | Phase::Ended => {}
                }
            }
            let opened = Arc::<Line>::default();
            tokio::spawn(converse(Arc::clone(&opened), self.channel.clone()));
            *line = Some(opened);
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        if let Some(line) = &*lock(&self.line) {
            line.end(Phase::Ended, || Outcome::Failed(ended()));
        }
    }
}

impl Waiting {
    fn of(line: &Arc<Line>, questions: &mut Questions, mut question: ReadSessionsRequest) -> Self {
        questions.last_number += 1;
        let number = questions.last_number;
        question.number = number;
        let (answer, outcome) = oneshot::channel();
        questions.waiting.insert(number, answer);
        questions.unsent.push_back(question);
        if let Some(sending) = questions.sending.take() {
            sending.wake();
        }
        Self {
            line: Arc::clone(line),
            number,
            outcome,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.line.0).waiting.remove(&self.number);
    }
}

impl Line {
    fn answered(&self, answer: ReadSessionsResponse) {
        let waiting = lock(&self.0).waiting.remove(&answer.number);
        if let Some(waiting) = waiting {
            // Who gave up in this moment is not there to hear it.
            let _ = waiting.send(Outcome::Answered(answer));
        }
    }

    /// Ends the line, once, for everybody who still waits.
    fn end(&self, phase: Phase, outcome: impl Fn() -> Outcome) {
        let mut questions = lock(&self.0);
        if !matches!(questions.phase, Phase::Open) {
            return;
        }
        questions.phase = phase;
        questions.unsent.clear();
        let waiting = std::mem::take(&mut questions.waiting);
        let sending = questions.sending.take();
        drop(questions);
        for (_, waiting) in waiting {
            let _ = waiting.send(outcome());
        }
        if let Some(sending) = sending {
            sending.wake();
        }
    }
}

impl Stream for Sent {
    type Item = ReadSessionsRequest;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut questions = lock(&self.0.0);
        while let Some(question) = questions.unsent.pop_front() {
            if questions.waiting.contains_key(&question.number) {
                return Poll::Ready(Some(question));
            }
        }
        if !matches!(questions.phase, Phase::Open) {
            return Poll::Ready(None);
        }
        questions.sending = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Sends what is asked and hands out what is answered until the call is over.
async fn converse(line: Arc<Line>, channel: Channel) {
    /// Also when this is cut off, with the scheduler it runs on.
    struct Over(Arc<Line>);
    impl Drop for Over {
        fn drop(&mut self) {
            self.0.end(Phase::Ended, || Outcome::Failed(ended()));
        }
    }
    let over = Over(line);
    let line = &over.0;
    let mut answers = match service(channel).read_sessions(Sent(Arc::clone(line))).await {
        Ok(opened) => opened.into_inner(),
        Err(refused) if is_not_taken(&refused) => {
            let until = Instant::now() + NOT_TAKEN;
            return line.end(Phase::NotTakenUntil(until), || Outcome::NotTaken);
        }
        Err(failed) => return line.end(Phase::Ended, || Outcome::Failed(failed.clone())),
    };
    loop {
        match answers.message().await {
            Ok(Some(answer)) => line.answered(answer),
            Ok(None) => return,
            Err(failed) => return line.end(Phase::Ended, || Outcome::Failed(failed.clone())),
        }
    }
}

fn is_not_taken(refused: &Status) -> bool {
    refused.code() == Code::Unimplemented || error::reason_of(refused) == Some(ErrorReason::ErrCallerNotAllowed)
}

fn ended() -> Status {
    Status::unavailable("the call that carried the question ended")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
