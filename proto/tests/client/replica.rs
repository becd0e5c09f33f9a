//! A session service that does as a test tells it.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, once, select};
use session_proto::error;
use session_proto::v1::session_service_server::SessionService;
use session_proto::v1::*;
use tokio::sync::{broadcast, watch};
use tokio_stream::wrappers::BroadcastStream;
use tonic::{Request, Response, Status, Streaming};

/// Answers every read with a session whose handle is the server's name, and counts the calls.
#[derive(Clone)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) answer: Answer,
    pub(crate) seen: Seen,
    pub(crate) events: broadcast::Sender<Tell>,
    pub(crate) greeting: Arc<Mutex<Vec<SessionEvent>>>,
    pub(crate) lines: Lines,
}

/// What a replica does with calls that carry many reads.
#[derive(Clone)]
pub(crate) enum Lines {
    /// Answers what they ask.
    Taken(watch::Sender<Orders>),
    /// Refuses them.
    Refused(Status),
}

/// How often calls that carry reads were told to end.
#[derive(Clone, Copy, Default)]
pub(crate) struct Orders {
    ended: usize,
    cut: usize,
    asked_elsewhere: usize,
    closed: bool,
}

impl Orders {
    fn ended(&self) -> usize {
        if self.closed { usize::MAX } else { self.ended }
    }
}

impl Lines {
    pub(crate) fn taken() -> Self {
        Self::Taken(watch::Sender::default())
    }

    /// Those open take no more questions, and end when the last is answered.
    pub(crate) fn end(&self) {
        self.order(|orders| orders.ended += 1);
    }

    /// Those open end so, and those opened from now on at once.
    pub(crate) fn close(&self) {
        self.order(|orders| orders.closed = true);
    }

    /// Those open ask their callers to ask elsewhere.
    pub(crate) fn ask_elsewhere(&self) {
        self.order(|orders| orders.asked_elsewhere += 1);
    }

    /// Those open end, whatever is asked.
    pub(crate) fn cut(&self) {
        self.order(|orders| orders.cut += 1);
    }

    fn order(&self, order: impl FnOnce(&mut Orders)) {
        if let Self::Taken(orders) = self {
            orders.send_modify(order);
        }
    }
}

/// When this is ordered once more, or for good.
fn next(orders: &watch::Sender<Orders>, count: fn(&Orders) -> usize) -> BoxFuture<'static, ()> {
    let mut orders = orders.subscribe();
    let before = count(&orders.borrow());
    Box::pin(async move {
        let ordered = |now: usize| now > before || now == usize::MAX;
        let _ = orders.wait_for(|orders| ordered(count(orders))).await;
    })
}

/// What a replica has seen.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) calls: watch::Sender<usize>,
    /// Calls answered in the opposite order.
    echoed: watch::Sender<usize>,
    /// Calls for many reads, those it refused included, and how many are open.
    pub(crate) lines: Arc<AtomicUsize>,
    pub(crate) open_lines: watch::Sender<usize>,
    /// The trace contexts of reads.
    pub(crate) traces: Arc<Mutex<Vec<String>>>,
    /// Resume tokens of the watches opened.
    pub(crate) watches: watch::Sender<Vec<String>>,
}

#[derive(Clone)]
pub(crate) enum Tell {
    Event(SessionEvent),
    Fails(Status),
    Ends,
}

#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Session,
    Missing,
    Invalid,
    Never,
    /// A session; to the first call only when two calls for many reads are open.
    OnceTwoAreOpen,
    /// A session whose handle is the one asked for, once so many are asked for, in the opposite order.
    Echo {
        together: usize,
    },
}

impl Seen {
    /// Counts a call; gives how many came before it.
    fn count(&self) -> usize {
        let mut before = 0;
        self.calls.send_modify(|calls| {
            before = *calls;
            *calls += 1;
        });
        before
    }
}

fn named(handle: String) -> Response<GetSessionResponse> {
    let session = Session {
        handle,
        ..Default::default()
    };
    Response::new(GetSessionResponse {
        session: Some(session.into()),
    })
}

#[tonic::async_trait]
impl SessionService for Replica {
    async fn get_session(
        &self,
        request: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResponse>, Status> {
        let turn = self.seen.count();
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
        match self.answer {
            Answer::Session => Ok(named(self.name.clone())),
            Answer::OnceTwoAreOpen => {
                let mut open = self.seen.open_lines.subscribe();
                open.wait_for(|open| turn > 0 || *open == 2).await.unwrap();
                Ok(named(self.name.clone()))
            }
            Answer::Echo { together } => {
                let mut echoed = self.seen.echoed.subscribe();
                let mine = together - 1 - turn;
                echoed.wait_for(|echoed| *echoed == mine).await.unwrap();
                self.seen.echoed.send_modify(|echoed| *echoed += 1);
                match request.into_inner().by {
                    Some(get_session_request::By::Handle(handle)) => Ok(named(handle)),
                    by => panic!("asked for {by:?}"),
                }
            }
            Answer::Invalid => Err(error::status(
                ErrorReason::ErrInvalidArgument,
                "handle: is malformed",
                [("field".to_owned(), "handle".to_owned())],
            )),
            Answer::Missing => Err(error::status(
                ErrorReason::ErrMissingSession,
                "there is no such session",
                [],
            )),
            Answer::Never => std::future::pending().await,
        }
    }
    type ReadSessionsStream = BoxStream<'static, Result<ReadSessionsResponse, Status>>;
    async fn read_sessions(
        &self,
        request: Request<Streaming<ReadSessionsRequest>>,
    ) -> Result<Response<Self::ReadSessionsStream>, Status> {
        self.seen.lines.fetch_add(1, Ordering::SeqCst);
        let orders = match &self.lines {
            Lines::Taken(orders) => orders,
            Lines::Refused(status) => return Err(status.clone()),
        };
        let ended = next(orders, Orders::ended);
        let cut = next(orders, |orders| orders.cut);
        let asks_elsewhere = next(orders, |orders| orders.asked_elsewhere);
        let line = Arc::new(OpenLine::of(&self.seen));
        let replica = self.clone();
        let answers = request.into_inner().take_until(ended).map(move |question| {
            let (replica, line) = (replica.clone(), line.clone());
            async move {
                let _line = line;
                Ok(replica.answers(question?).await)
            }
        });
        let answers = answers.buffer_unordered(1_000).map(Some);
        let asks_elsewhere = once(asks_elsewhere).map(|()| Some(Ok(ReadSessionsResponse::default())));
        let cut = once(cut).map(|()| Some(Err(Status::unavailable("cut off"))));
        let told = select(answers.chain(once(ready(None))), select(asks_elsewhere, cut));
        let told = told.take_while(|told| ready(told.is_some())).filter_map(ready);
        Ok(Response::new(told.boxed()))
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
        self.seen.count();
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
        // Something between client and service failed after the request was sent.
        self.seen.count();
        Err(Status::unavailable("connection reset"))
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
    type FollowSessionsStream = Self::WatchSessionsStream;
    /// As a service of an earlier release answers.
    async fn follow_sessions(
        &self,
        _: Request<Streaming<FollowSessionsRequest>>,
    ) -> Result<Response<Self::FollowSessionsStream>, Status> {
        Err(error::status(
            ErrorReason::ErrUnimplemented,
            "there is no such method",
            [],
        ))
    }
    type WatchSessionsStream =
        std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<SessionEvent, Status>> + Send>>;
    async fn watch_sessions(
        &self,
        request: Request<WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        let token = request.into_inner().resume_token;
        if token == "malformed" {
            return Err(error::status(ErrorReason::ErrInvalidArgument, "not a token", []));
        }
        let events = BroadcastStream::new(self.events.subscribe())
            .map(Result::unwrap)
            .take_while(|tell| ready(!matches!(tell, Tell::Ends)))
            .map(|tell| match tell {
                Tell::Event(event) => Ok(event),
                Tell::Fails(status) => Err(status),
                Tell::Ends => Err(Status::internal("not told")),
            });
        self.seen.watches.send_modify(|watches| watches.push(token));
        let greeting = self.greeting.lock().unwrap().clone();
        Ok(Response::new(Box::pin(
            tokio_stream::iter(greeting.into_iter().map(Ok)).chain(events),
        )))
    }
}

impl Replica {
    /// A question is answered as the call it stands for.
    async fn answers(&self, question: ReadSessionsRequest) -> ReadSessionsResponse {
        let Some(read_sessions_request::Question::Get(get)) = question.question else {
            panic!("not asked for in these tests: {question:?}");
        };
        let mut request = Request::new(get);
        assert_ne!(question.timeout_ms, 0, "every question carries its deadline");
        request.set_timeout(Duration::from_millis(question.timeout_ms.into()));
        if !question.traceparent.is_empty() {
            let trace = question.traceparent.parse().unwrap();
            request.metadata_mut().insert("traceparent", trace);
        }
        let (session, failure) = match self.get_session(request).await {
            Ok(answer) => (answer.into_inner().session, None),
            Err(status) => {
                let failure = read_sessions_response::Failure {
                    reason: error::reason_of(&status).unwrap().into(),
                    message: status.message().to_owned(),
                    metadata: error::metadata_of(&status),
                };
                (None, Some(failure))
            }
        };
        ReadSessionsResponse {
            number: question.number,
            session,
            rolled: false,
            failure,
        }
    }
}

/// Counts a call for many reads while it is open.
struct OpenLine(watch::Sender<usize>);

impl OpenLine {
    fn of(seen: &Seen) -> Self {
        seen.open_lines.send_modify(|open| *open += 1);
        Self(seen.open_lines.clone())
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

fn unanswered<T>() -> Result<T, Status> {
    Err(Status::unimplemented("not asked for in these tests"))
}
