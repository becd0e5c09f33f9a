//! Questions about sessions that came over one call, each treated as the call it stands for.
//!
//! Invariants
//! - A question is judged, timed, measured and recorded by itself, as a call of its own is; a list of callers that changed counts
//!   from the next question on.
//! - When the process drains, or its caller is not believed any more, no further question is taken; while it drains those taken are
//!   answered.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{BoxStream, Stream, unfold};
use prometheus::HistogramVec;
use session_proto::error;
use session_proto::v1::read_sessions_request::Question;
use session_proto::v1::read_sessions_response::Failure;
use session_proto::v1::{ErrorReason, ReadSessionsRequest, ReadSessionsResponse, Session};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::Instrument as _;

use super::call::Call;
use super::calls::told;
use super::deadline::MAX_DEADLINE;
use super::method::Method;
use super::record::{self, Record};
use super::service::Api;
use super::{arguments, status};
use crate::callers::{Rpc, TurnedAway};

/// Questions of one call under way at once, as many as calls on one connection; more wait with the caller.
const AT_ONCE: usize = 1024;

/// What is sent.
pub(super) type Answers = BoxStream<'static, Result<ReadSessionsResponse, Status>>;

/// The answers to the questions of a call.
pub(super) fn answers(
    api: Api,
    questions: Streaming<ReadSessionsRequest>,
    call: Call,
    draining: CancellationToken,
) -> Answers {
    let reader = Arc::new(Reader {
        durations: api.calls().durations(),
        api,
        call: call.clone(),
    });
    taken(questions, call, draining)
        .map(move |question| {
            let reader = Arc::clone(&reader);
            async move { Ok(reader.answer(question?).await) }
        })
        .buffer_unordered(AT_ONCE)
        .boxed()
}

/// The questions, until they end, or why no more are taken. Nothing, if the process drains: whoever asks goes on elsewhere.
fn taken(
    questions: Streaming<ReadSessionsRequest>,
    call: Call,
    draining: CancellationToken,
) -> impl Stream<Item = Result<ReadSessionsRequest, Status>> {
    let over: BoxFuture<'static, Option<Status>> = async move {
        let too_late = async {
            match call.asked_until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let disbelieved = call.disbelieved.clone().unwrap_or_default();
        tokio::select! {
            biased;
            () = draining.cancelled() => None,
            () = disbelieved.cancelled() => Some(status::turned_away(TurnedAway::Unknown)),
            () = too_late => Some(status::too_late()),
        }
    }
    .boxed();
    unfold(Some((questions, over)), |taking| async move {
        let (mut questions, mut over) = taking?;
        let question = tokio::select! {
            biased;
            why = &mut over => return why.map(|why| (Err(why), None)),
            question = questions.next() => question?,
        };
        Some(match question {
            Ok(question) => (Ok(question), Some((questions, over))),
            Err(unread) => (Err(status::explained(&unread).unwrap_or(unread)), None),
        })
    })
}

/// Answers the questions of a call.
struct Reader {
    api: Api,
    call: Call,
    durations: Arc<HistogramVec>,
}

impl Reader {
    async fn answer(&self, question: ReadSessionsRequest) -> ReadSessionsResponse {
        let number = question.number;
        match self.read(question).await {
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

    async fn read(&self, question: ReadSessionsRequest) -> Result<(Box<Session>, bool), Status> {
        let trace = trace(&question);
        let rpc = match &question.question {
            Some(Question::Get(_)) => Rpc::GetSession,
            Some(Question::Roll(_)) => Rpc::RollSession,
            None => return arguments::wrong("question", "is required").map_err(|error| status::of(&error)),
        };
        let method = Method::of_rpc(rpc);
        let asked = (question.timeout_ms != 0).then(|| Duration::from_millis(question.timeout_ms.into()));
        let call = self.call.asked_within(asked);
        let span = record::span(method, &trace);
        let record = Record::begin(method, call.clone(), Arc::clone(&self.durations), span.clone());
        let outcome = match self.api.calls().callers().allow(&call.caller, rpc) {
            Err(why) => Err(status::turned_away(why)),
            Ok(()) => {
                let work = async {
                    let outcome = match &question.question {
                        Some(Question::Get(get)) => self.api.get(&call, get).await.map(|read| (read, false)),
                        Some(Question::Roll(roll)) => self.api.roll(&call, roll).await,
                        None => arguments::wrong("question", "is required"),
                    };
                    told(rpc, &call, outcome)
                };
                let time = asked.unwrap_or(method.deadline).min(MAX_DEADLINE);
                let answer = tokio::time::timeout(time, work).instrument(span).await;
                answer.unwrap_or_else(|_| Err(status::too_late()))
            }
        };
        record.answered(outcome.as_ref().err());
        outcome
    }
}

/// The trace a question belongs to, as the headers of a call tell it.
fn trace(question: &ReadSessionsRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, text) in [("traceparent", &question.traceparent), ("tracestate", &question.tracestate)] {
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
