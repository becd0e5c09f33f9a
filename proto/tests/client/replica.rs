//! A scripted session service.

use std::future::ready;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::sync::{broadcast, watch};
use tokio_stream::wrappers::BroadcastStream;
use tonic::{Request, Response, Status, Streaming};
use vestibule_session_api::error;
use vestibule_session_api::v1::session_service_server::SessionService;
use vestibule_session_api::v1::*;

/// Answers every read with a session whose handle is the server's name, and counts the calls.
#[derive(Clone)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) answer: Answer,
    pub(crate) seen: Seen,
    pub(crate) events: broadcast::Sender<Push>,
    pub(crate) greeting: Arc<Mutex<Vec<SessionEvent>>>,
    pub(crate) batches: Batches,
    /// Whether reads of the handle "slow" are answered.
    pub(crate) slow_reads: watch::Sender<bool>,
}

/// A replica's reaction to batch calls.
#[derive(Clone)]
pub(crate) enum Batches {
    /// Answers each read as in its own call.
    Answered,
    Refused(Status),
    /// Never answers.
    Unanswered,
}

/// The calls a replica has received.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) calls: watch::Sender<usize>,
    /// The number of reads in each batch call.
    pub(crate) batches: Arc<Mutex<Vec<usize>>>,
    /// The request IDs in each batch call.
    pub(crate) request_ids: Arc<Mutex<Vec<Vec<String>>>>,
    /// The trace contexts of reads.
    pub(crate) traces: Arc<Mutex<Vec<String>>>,
    /// Resume tokens of the watches opened.
    pub(crate) watches: watch::Sender<Vec<String>>,
}

#[derive(Clone)]
pub(crate) enum Push {
    Event(SessionEvent),
    Fails(Status),
    Ends,
}

#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Session,
    Missing,
    /// The session is sealed with a key the replica does not have.
    UnknownKey,
    Never,
    /// A session with the requested handle; "nobody" does not exist, "large" does not fit into a batch.
    Echo,
}

fn unknown_key() -> Status {
    let key = ("key".to_owned(), "0a1b2c3d".to_owned());
    error::status(
        ErrorReason::ErrUnknownEncryptionKey,
        "the record needs key 0a1b2c3d",
        [key],
    )
}

fn named(handle: String) -> GetSessionResponse {
    let session = Session {
        handle,
        ..Default::default()
    };
    GetSessionResponse {
        session: Some(session.into()),
        roll_due: false,
    }
}

#[tonic::async_trait]
impl SessionService for Replica {
    async fn get_session(
        &self,
        request: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResponse>, Status> {
        self.seen.calls.send_modify(|calls| *calls += 1);
        assert!(
            request.metadata().contains_key("grpc-timeout"),
            "every call carries its deadline"
        );
        if let Some(trace) = request.metadata().get("traceparent") {
            self.seen
                .traces
                .lock()
                .unwrap()
                .push(trace.to_str().unwrap().to_owned());
        }
        self.answer(request.into_inner()).await.map(Response::new)
    }
    async fn batch_get_sessions(
        &self,
        request: Request<BatchGetSessionsRequest>,
    ) -> Result<Response<BatchGetSessionsResponse>, Status> {
        assert!(request.metadata().contains_key("grpc-timeout"));
        let ids = request.metadata().get_all("x-request-id").iter();
        let ids = ids.map(|id| id.to_str().unwrap().to_owned()).collect();
        self.seen.request_ids.lock().unwrap().push(ids);
        let requests = request.into_inner().requests;
        self.seen.batches.lock().unwrap().push(requests.len());
        match &self.batches {
            Batches::Answered => {}
            Batches::Refused(status) => return Err(status.clone()),
            Batches::Unanswered => std::future::pending().await,
        }
        let results = join_all(requests.into_iter().map(|request| self.result(request))).await;
        Ok(Response::new(BatchGetSessionsResponse { results }))
    }
    async fn begin_sign_in(
        &self,
        _: Request<BeginSignInRequest>,
    ) -> Result<Response<BeginSignInResponse>, Status> {
        unanswered()
    }
    async fn abandon_sign_in(
        &self,
        _: Request<AbandonSignInRequest>,
    ) -> Result<Response<AbandonSignInResponse>, Status> {
        unanswered()
    }
    async fn create_session(
        &self,
        _: Request<CreateSessionRequest>,
    ) -> Result<Response<CreateSessionResponse>, Status> {
        self.seen.calls.send_modify(|calls| *calls += 1);
        Ok(Response::new(CreateSessionResponse::default()))
    }
    async fn roll_session(
        &self,
        _: Request<RollSessionRequest>,
    ) -> Result<Response<RollSessionResponse>, Status> {
        unanswered()
    }
    async fn update_session(
        &self,
        _: Request<UpdateSessionRequest>,
    ) -> Result<Response<UpdateSessionResponse>, Status> {
        self.seen.calls.send_modify(|calls| *calls += 1);
        match self.answer {
            Answer::UnknownKey => return Err(unknown_key()),
            Answer::Echo => return Ok(Response::new(UpdateSessionResponse::default())),
            _ => {}
        }
        // A hop between client and service failed after the request was sent.
        Err(Status::unavailable("connection reset"))
    }
    async fn rotate_cookie(
        &self,
        _: Request<RotateCookieRequest>,
    ) -> Result<Response<RotateCookieResponse>, Status> {
        unanswered()
    }

    async fn receive_security_event(
        &self,
        _: Request<ReceiveSecurityEventRequest>,
    ) -> Result<Response<ReceiveSecurityEventResponse>, Status> {
        unanswered()
    }

    async fn bind_session(
        &self,
        _: Request<BindSessionRequest>,
    ) -> Result<Response<BindSessionResponse>, Status> {
        unanswered()
    }
    async fn get_access_token(
        &self,
        _: Request<GetAccessTokenRequest>,
    ) -> Result<Response<GetAccessTokenResponse>, Status> {
        unanswered()
    }
    async fn end_session(
        &self,
        _: Request<EndSessionRequest>,
    ) -> Result<Response<EndSessionResponse>, Status> {
        unanswered()
    }
    async fn end_sessions(
        &self,
        _: Request<EndSessionsRequest>,
    ) -> Result<Response<EndSessionsResponse>, Status> {
        unanswered()
    }
    async fn list_sessions(
        &self,
        _: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        unanswered()
    }
    type WatchSessionsStream = Self::FollowSessionsStream;
    async fn watch_sessions(
        &self,
        _: Request<WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        unanswered()
    }
    type FollowSessionsStream =
        std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<SessionEvent, Status>> + Send>>;
    /// Answers only the first request.
    async fn follow_sessions(
        &self,
        request: Request<Streaming<FollowSessionsRequest>>,
    ) -> Result<Response<Self::FollowSessionsStream>, Status> {
        let first = request.into_inner().message().await?.unwrap();
        let token = first.watch.unwrap().resume_token;
        if token == "malformed" {
            return Err(error::status(ErrorReason::ErrInvalidArgument, "not a token", []));
        }
        let events = BroadcastStream::new(self.events.subscribe())
            .map(Result::unwrap)
            .take_while(|tell| ready(!matches!(tell, Push::Ends)))
            .map(|tell| match tell {
                Push::Event(event) => Ok(event),
                Push::Fails(status) => Err(status),
                Push::Ends => Err(Status::internal("not told")),
            });
        self.seen.watches.send_modify(|watches| watches.push(token));
        let mut greeting = self.greeting.lock().unwrap().clone();
        for event in &mut greeting {
            if event.kind() == session_event::Kind::Heartbeat {
                event.number = first.number;
            }
        }
        Ok(Response::new(Box::pin(
            tokio_stream::iter(greeting.into_iter().map(Ok)).chain(events),
        )))
    }
}

impl Replica {
    async fn answer(&self, request: GetSessionRequest) -> Result<GetSessionResponse, Status> {
        let missing = error::status(
            ErrorReason::ErrMissingSession,
            "there is no such session",
            [("field".to_owned(), "handle".to_owned())],
        );
        match (self.answer, request.by) {
            (Answer::Session, _) => Ok(named(self.name.clone())),
            (Answer::Echo, Some(get_session_request::By::Handle(handle))) => {
                if handle == "slow" {
                    let mut answered = self.slow_reads.subscribe();
                    answered.wait_for(|answered| *answered).await.unwrap();
                }
                match handle.as_str() {
                    "nobody" => Err(missing),
                    _ => Ok(named(handle)),
                }
            }
            (Answer::Echo, by) => panic!("asked for {by:?}"),
            (Answer::Missing, _) => Err(missing),
            (Answer::UnknownKey, _) => Err(unknown_key()),
            (Answer::Never, _) => std::future::pending().await,
        }
    }

    async fn result(&self, request: GetSessionRequest) -> batch_get_sessions_response::Result {
        use batch_get_sessions_response::result::Outcome;
        let large = Some(get_session_request::By::Handle("large".to_owned()));
        let answer = if request.by == large {
            Err(error::status(ErrorReason::ErrOverloaded, "no room", []))
        } else {
            self.answer(request).await
        };
        let outcome = match answer {
            Ok(response) => Outcome::Response(response),
            Err(status) => Outcome::Failure(batch_get_sessions_response::Failure {
                reason: error::reason_of(&status).unwrap().into(),
                message: status.message().to_owned(),
                metadata: error::metadata_of(&status),
            }),
        };
        batch_get_sessions_response::Result {
            outcome: Some(outcome),
        }
    }
}

fn unanswered<T>() -> Result<T, Status> {
    Err(Status::unimplemented("not asked for in these tests"))
}
