//! Reads of sessions over one call to a replica (`ReadSessions`) instead of a call for each.
//!
//! A call costs its head, its stream and its tasks on both sides: several times what reading a session costs. Questions that are
//! there together leave in one frame here, and their answers come in one. A line is that one call: the first question opens it, and
//! the first one after it closes opens another.
//!
//! Invariants
//! - Whoever asks is answered, or told that there will be no answer: no question waits on a line that ended.
//! - A question nobody waits for any more is not sent, and nothing of it is remembered.
//! - No more questions are on their way than the service takes at once: it never has to stop reading the connection's frames.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, sleep, timeout};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::connection::AcceptsCalls;
use super::{call, service};
use crate::error;
use crate::v1::{ErrorReason, ReadSessionsRequest, ReadSessionsResponse};

/// Questions sent and not answered yet: half of what the service takes at once.
const ON_THEIR_WAY_MAX: usize = 512;

/// How long a line takes questions, about: then another one is opened, for a balancer between to choose anew.
const AGE_MAX: Duration = Duration::from_secs(60);

/// A line with open questions that tells nothing for so long is given up. The service answers each within the time it has, or with
/// what its store said in less.
const SILENCE_MAX: Duration = Duration::from_secs(6);

/// How long a replica that takes no such call is not offered one again: one of an older release, or with a list of callers that
/// does not name the method.
const NOT_TAKEN: Duration = Duration::from_secs(60);

/// The number of no question: the service asks to be asked over another connection.
const ASK_ELSEWHERE: u64 = 0;

/// The line over one connection.
#[derive(Debug)]
pub(super) struct Reads {
    channel: Channel,
    standing: AcceptsCalls,
    line: Mutex<Option<Arc<Line>>>,
}

/// What came of a question.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was answered.
    Answered(ReadSessionsResponse),
    /// It has to be a call of its own: the replica takes no questions, or no more of them.
    CallInstead,
    /// The line could not be opened, or was cut off.
    Failed(Status),
}

/// One call, while it is open and after.
#[derive(Debug, Default)]
struct Line(Mutex<Questions>);

#[derive(Debug, Default)]
struct Questions {
    phase: Phase,
    last_number: u64,
    unsent: VecDeque<ReadSessionsRequest>,
    waiting: BTreeMap<u64, oneshot::Sender<Outcome>>,
    on_their_way: usize,
    /// Wakes what sends.
    sending: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Open,
    /// Those asked are sent and answered, no further ones are taken.
    Closing,
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

/// Ends the line however what drives it ends.
struct Driven(Arc<Line>);

impl Reads {
    /// Opens nothing yet.
    pub(super) fn over(channel: Channel, standing: AcceptsCalls) -> Self {
        Self {
            channel,
            standing,
            line: Mutex::default(),
        }
    }

    /// Asks a question; its number is chosen here. Panics outside a tokio runtime.
    pub(super) async fn ask(&self, question: ReadSessionsRequest) -> Outcome {
        match self.put(question) {
            Some(mut waiting) => {
                let outcome = (&mut waiting.outcome).await;
                outcome.unwrap_or_else(|_| Outcome::Failed(cut_off()))
            }
            None => Outcome::CallInstead,
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
                    Phase::NotTakenUntil(_) | Phase::Closing | Phase::Ended => {}
                }
            }
            let opened = Arc::<Line>::default();
            let driven = Driven(Arc::clone(&opened));
            tokio::spawn(drive(driven, self.channel.clone(), self.standing.clone()));
            *line = Some(opened);
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        if let Some(line) = &*lock(&self.line) {
            line.close();
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
        questions.wake();
        Self {
            line: Arc::clone(line),
            number,
            outcome,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut questions = lock(&self.line.0);
        let unanswered = questions.waiting.remove(&self.number).is_some();
        if unanswered {
            let unsent = &mut questions.unsent;
            if let Ok(at) = unsent.binary_search_by_key(&self.number, |question| question.number) {
                unsent.remove(at);
                // It may have been the last that a closing line had to send.
                questions.wake();
            }
        }
    }
}

impl Questions {
    fn wake(&mut self) {
        if let Some(sending) = self.sending.take() {
            sending.wake();
        }
    }
}

impl Line {
    fn hears(&self, answer: ReadSessionsResponse) {
        if answer.number == ASK_ELSEWHERE {
            return self.close();
        }
        let mut questions = lock(&self.0);
        questions.on_their_way = questions.on_their_way.saturating_sub(1);
        if !questions.unsent.is_empty() {
            questions.wake();
        }
        let waiting = questions.waiting.remove(&answer.number);
        drop(questions);
        if let Some(waiting) = waiting {
            // Who gave up in this moment is not there to hear it.
            let _ = waiting.send(Outcome::Answered(answer));
        }
    }

    /// Takes no further questions.
    fn close(&self) {
        let mut questions = lock(&self.0);
        if matches!(questions.phase, Phase::Open) {
            questions.phase = Phase::Closing;
            questions.wake();
        }
    }

    /// Ends the line, once, for everybody who still waits.
    fn end(&self, phase: Phase, outcome: impl Fn() -> Outcome) {
        let mut questions = lock(&self.0);
        if !matches!(questions.phase, Phase::Open | Phase::Closing) {
            return;
        }
        questions.phase = phase;
        questions.unsent.clear();
        questions.wake();
        let waiting = std::mem::take(&mut questions.waiting);
        drop(questions);
        for waiting in waiting.into_values() {
            let _ = waiting.send(outcome());
        }
    }

    fn has_open_questions(&self) -> bool {
        lock(&self.0).on_their_way > 0
    }
}

impl Stream for Sent {
    type Item = ReadSessionsRequest;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut questions = lock(&self.0.0);
        if questions.on_their_way < ON_THEIR_WAY_MAX
            && let Some(question) = questions.unsent.pop_front()
        {
            questions.on_their_way += 1;
            return Poll::Ready(Some(question));
        }
        if questions.unsent.is_empty() && !matches!(questions.phase, Phase::Open) {
            return Poll::Ready(None);
        }
        questions.sending = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.end(Phase::Ended, || Outcome::Failed(cut_off()));
    }
}

/// Sends what is asked on a line and hands out what is answered until it is over.
async fn drive(driven: Driven, channel: Channel, standing: AcceptsCalls) {
    let line = &driven.0;
    let not_taken = || {
        line.end(Phase::NotTakenUntil(Instant::now() + NOT_TAKEN), || {
            Outcome::CallInstead
        })
    };
    let opening = timeout(
        SILENCE_MAX,
        service(channel).read_sessions(Sent(Arc::clone(line))),
    )
    .await;
    let mut answers = match opening {
        Ok(Ok(opened)) => opened.into_inner(),
        Ok(Err(refused)) if is_not_taken(&refused) => return not_taken(),
        Ok(Err(failed)) => return line.end(Phase::Ended, || Outcome::Failed(failed.clone())),
        Err(_elapsed) => return,
    };
    let mut age = pin!(sleep(call::backoff(AGE_MAX)));
    let mut silence = interval(SILENCE_MAX);
    // Whether questions have been open since the last look, without an answer to any.
    let mut silent = false;
    loop {
        let answer = tokio::select! {
            biased;
            answer = answers.message() => answer,
            () = &mut age, if !age.is_elapsed() => {
                line.close();
                continue;
            }
            _ = silence.tick() => {
                if silent {
                    tracing::warn!("questions about sessions are not answered: the call that carries them is given up");
                    return;
                }
                silent = line.has_open_questions();
                continue;
            }
        };
        match answer {
            Ok(Some(answer)) => {
                silent = false;
                if answer.number == ASK_ELSEWHERE {
                    standing.go();
                }
                line.hears(answer);
            }
            Ok(None) => return line.end(Phase::Ended, || Outcome::CallInstead),
            Err(refused) if is_not_taken(&refused) => return not_taken(),
            // Whatever it was, it was not about the questions that are open.
            Err(failed) => {
                tracing::debug!(
                    error = &failed as &dyn std::error::Error,
                    "a call for many reads was cut off"
                );
                return;
            }
        }
    }
}

fn is_not_taken(refused: &Status) -> bool {
    refused.code() == Code::Unimplemented
        || error::reason_of(refused) == Some(ErrorReason::ErrCallerNotAllowed)
}

fn cut_off() -> Status {
    Status::unavailable("the call that carried the question was cut off")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
