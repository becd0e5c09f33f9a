//! Questions about sessions over one call (`ReadSessions`).

use session_proto::v1::read_sessions_request::Question;
use session_proto::v1::read_sessions_response::Failure;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{
    ErrorReason, GetSessionRequest, ReadSessionsRequest, ReadSessionsResponse, RollSessionRequest, Session,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::support::within;

/// One call.
pub(crate) struct Questions {
    asked: Option<UnboundedSender<ReadSessionsRequest>>,
    answers: Streaming<ReadSessionsResponse>,
}

impl Questions {
    pub(crate) async fn open(client: &mut SessionServiceClient<Channel>) -> Self {
        let (asked, questions) = unbounded_channel();
        let opened = client.read_sessions(UnboundedReceiverStream::new(questions));
        Self {
            asked: Some(asked),
            answers: within(opened).await.unwrap().into_inner(),
        }
    }

    /// Asks, without waiting for the answer.
    pub(crate) fn ask(&self, question: ReadSessionsRequest) {
        self.asked.as_ref().unwrap().send(question).unwrap();
    }

    /// Says that there are no more questions.
    pub(crate) fn end(&mut self) {
        self.asked = None;
    }

    /// The next answer, or how the call ended.
    pub(crate) async fn next(&mut self) -> Result<Option<ReadSessionsResponse>, Status> {
        within(self.answers.message()).await
    }

    /// The next answer, of a call that goes on.
    pub(crate) async fn answer(&mut self) -> ReadSessionsResponse {
        self.next().await.unwrap().unwrap()
    }

    /// Waits until the caller is asked to ask elsewhere.
    pub(crate) async fn is_sent_away(&mut self) {
        assert_eq!(self.answer().await, ReadSessionsResponse::default());
    }

    /// Asks and waits for the answer.
    pub(crate) async fn answer_to(&mut self, question: ReadSessionsRequest) -> ReadSessionsResponse {
        let number = question.number;
        self.ask(question);
        let answer = self.answer().await;
        assert_eq!(answer.number, number, "{answer:?}");
        answer
    }
}

pub(crate) fn of_get(number: u64, request: GetSessionRequest) -> ReadSessionsRequest {
    ReadSessionsRequest {
        number,
        question: Some(Question::Get(request)),
        ..Default::default()
    }
}

pub(crate) fn of_roll(number: u64, request: RollSessionRequest) -> ReadSessionsRequest {
    ReadSessionsRequest {
        number,
        question: Some(Question::Roll(request)),
        ..Default::default()
    }
}

/// A question of a later release, which is answered without the store.
pub(crate) fn unknown(number: u64) -> ReadSessionsRequest {
    ReadSessionsRequest {
        number,
        ..Default::default()
    }
}

/// The session of an answer that tells one.
pub(crate) fn session(answer: ReadSessionsResponse) -> Session {
    assert_eq!(answer.failure, None);
    *answer.session.unwrap()
}

/// The failure of an answer that tells one.
pub(crate) fn failure(answer: ReadSessionsResponse) -> Failure {
    assert_eq!((answer.session, answer.rolled), (None, false));
    answer.failure.unwrap()
}

pub(crate) fn why(answer: ReadSessionsResponse) -> ErrorReason {
    failure(answer).reason()
}
