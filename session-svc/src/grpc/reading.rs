//! Questions about sessions that came over one call, each treated as the call it stands for.
//!
//! Invariants
//! - A question is judged, timed, measured and recorded by itself, as a call of its own is; a list of callers that changed counts
//!   from the next question on.
//! - When the process drains, or the caller's certificate is not believed any more, the caller is asked to ask elsewhere, what it
//!   asks until it has heard that is answered, and the call ends well.
//! - A caller that does not read its answers holds up nobody's work but its own next questions, and is refused more when too much waits.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use chassis::serve::BytesPermit;
use futures_util::StreamExt as _;
use futures_util::stream::Map;
use prometheus::HistogramVec;
use prost::Message as _;
use session_proto::error;
use session_proto::v1::read_sessions_request::Question;
use session_proto::v1::read_sessions_response::Failure;
use session_proto::v1::{ErrorReason, ReadSessionsRequest, ReadSessionsResponse, Session};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::Instrument as _;

use super::call::Call;
use super::calls::told;
use super::deadline::MAX_DEADLINE;
use super::method::Method;
use super::record::{self, Record};
use super::service::Api;
use super::status;
use crate::callers::Rpc;

/// Questions of one call under way or answered and not read, as many as calls on one connection; more wait with the caller.
const AT_ONCE: usize = 1024;

/// What the service itself may have to say on a call: to ask elsewhere, and why it ends.
const OWN_WORDS: usize = 2;

/// How long a caller that was asked to ask elsewhere is still answered: far more than it takes to hear it.
const STILL_ANSWERED: Duration = Duration::from_secs(1);

/// What a question takes while it is under way, its answer aside, in bytes: its task and the call to the store.
const QUESTION_BYTES: usize = 1024;

/// An answer, and its place among what is kept for the caller until it is taken.
type Kept = (Result<ReadSessionsResponse, Status>, Option<BytesPermit>);

/// What is sent.
pub(super) type Answers = Map<ReceiverStream<Kept>, fn(Kept) -> Result<ReadSessionsResponse, Status>>;

/// The answers to the questions of a call.
pub(super) fn answers(
    api: Api,
    questions: Streaming<ReadSessionsRequest>,
    call: Call,
    draining: CancellationToken,
) -> Answers {
    let (places, answers) = mpsc::channel(AT_ONCE + OWN_WORDS);
    let reader = Reader {
        durations: api.calls().durations(),
        api,
        call,
    };
    tokio::spawn(take(Arc::new(reader), questions, places, draining));
    ReceiverStream::new(answers).map(|(answer, _held)| answer)
}

/// Takes the questions of a call, each when there is a place for its answer, and has them answered until the call is over. A caller
/// that hangs up ends what it asked.
async fn take(
    reader: Arc<Reader>,
    mut questions: Streaming<ReadSessionsRequest>,
    places: mpsc::Sender<Kept>,
    draining: CancellationToken,
) {
    let own_place = || places.clone().try_reserve_owned().ok();
    let (mut notice, last_word) = (own_place(), own_place());
    let disbelieved = reader.call.disbelieved.clone().unwrap_or_default();
    let mut leaving = pin!(async {
        tokio::select! {
            () = draining.cancelled() => {}
            () = disbelieved.cancelled() => {}
        }
    });
    let mut too_late = pin!(until(reader.call.asked_until));
    let mut last_moment = pin!(until(None));
    let mut gone = pin!(places.closed());
    let mut answering = JoinSet::new();
    let mut taking = true;
    let failure = loop {
        if !taking && answering.is_empty() {
            return;
        }
        let next = async {
            let place = places.clone().reserve_owned().await;
            (place, questions.message().await)
        };
        tokio::select! {
            biased;
            () = &mut gone => return,
            () = &mut too_late => break status::too_late(),
            () = &mut leaving, if notice.is_some() => {
                last_moment.set(until(Instant::now().checked_add(STILL_ANSWERED)));
                if let Some(place) = notice.take() {
                    place.send((Ok(ReadSessionsResponse::default()), None));
                }
            }
            () = &mut last_moment, if taking => taking = false,
            Some(_) = answering.join_next() => {}
            (place, question) = next, if taking => match (place, question) {
                (Ok(place), Ok(Some(question))) => {
                    let reader = Arc::clone(&reader);
                    answering.spawn(async move {
                        place.send(reader.kept(question).await);
                    });
                }
                (Ok(_), Err(unread)) => break status::explained(&unread).unwrap_or(unread),
                (Ok(_), Ok(None)) | (Err(_), _) => taking = false,
            },
        }
    };
    if let Some(place) = last_word {
        place.send((Err(failure), None));
    }
}

/// Then; without an instant, never.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}

/// Answers the questions of a call.
struct Reader {
    api: Api,
    call: Call,
    durations: Arc<HistogramVec>,
}

impl Reader {
    /// The answer to a question, or a refusal where there is no room for either.
    async fn kept(&self, question: ReadSessionsRequest) -> Kept {
        let number = question.number;
        let waiting = &self.call.waiting;
        let Some(under_way) = waiting.hold(QUESTION_BYTES) else {
            return (Ok(told_of(number, Err(status::overloaded()))), None);
        };
        let answer = told_of(number, self.read(question).await);
        drop(under_way);
        match waiting.hold(answer.encoded_len()) {
            Some(held) => (Ok(answer), Some(held)),
            None => (Ok(told_of(number, Err(status::overloaded()))), None),
        }
    }

    async fn read(&self, question: ReadSessionsRequest) -> Result<(Box<Session>, bool), Status> {
        let rpc = match &question.question {
            Some(Question::Get(_)) => Some(Rpc::GetSession),
            Some(Question::Roll(_)) => Some(Rpc::RollSession),
            None => None,
        };
        let method = rpc.map_or_else(Method::other, Method::of_rpc);
        let asked = (question.timeout_ms != 0).then(|| Duration::from_millis(question.timeout_ms.into()));
        let call = self.call.asked_within(asked);
        let span = record::span(method, &trace(&question));
        let record = Record::begin(method, call.clone(), Arc::clone(&self.durations), span.clone());
        let time = asked.unwrap_or(method.deadline).min(MAX_DEADLINE);
        let work = tokio::time::timeout(time, self.judged(rpc, &call, &question)).instrument(span);
        let outcome = work.await.unwrap_or_else(|_| Err(status::too_late()));
        record.answered(outcome.as_ref().err());
        outcome
    }

    async fn judged(
        &self,
        rpc: Option<Rpc>,
        call: &Call,
        question: &ReadSessionsRequest,
    ) -> Result<(Box<Session>, bool), Status> {
        let (Some(rpc), Some(question)) = (rpc, &question.question) else {
            return Err(status::unknown_question());
        };
        let allowed = self.api.calls().callers().allow(&call.caller, rpc);
        allowed.map_err(status::turned_away)?;
        let outcome = match question {
            Question::Get(get) => self.api.get(call, get).await.map(|session| (session, false)),
            Question::Roll(roll) => self.api.roll(call, roll).await,
        };
        told(rpc, call, outcome)
    }
}

fn told_of(number: u64, outcome: Result<(Box<Session>, bool), Status>) -> ReadSessionsResponse {
    match outcome {
        Ok((session, rolled)) => ReadSessionsResponse {
            number,
            session: Some(session),
            rolled,
            failure: None,
        },
        Err(status) => ReadSessionsResponse {
            number,
            failure: Some(failure(&status)),
            ..ReadSessionsResponse::default()
        },
    }
}

/// The trace a question belongs to, as the headers of a call tell it.
fn trace(question: &ReadSessionsRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, text) in [
        ("traceparent", &question.traceparent),
        ("tracestate", &question.tracestate),
    ] {
        if !text.is_empty()
            && let Ok(value) = HeaderValue::from_str(text)
        {
            headers.insert(name, value);
        }
    }
    headers
}

fn failure(status: &Status) -> Failure {
    let reason = error::reason_of(status).unwrap_or(ErrorReason::ErrInternal);
    Failure {
        reason: reason.into(),
        message: status.message().to_owned(),
        metadata: error::metadata_of(status),
    }
}
