//! Answers operators' calls in place of the session service, and remembers them.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::stream::{Stream, StreamExt as _, unfold};
use session_proto::client::SessionClient;
use session_proto::v1::activity::What;
use session_proto::v1::operator_session_service_server::{
    OperatorSessionService, OperatorSessionServiceServer,
};
use session_proto::v1::session_filter::By;
use session_proto::v1::{
    Activity, Cause, EndFoundSessionsRequest, EndFoundSessionsResponse, EndSessionRequest,
    ListEndingsRequest, ListEndingsResponse, ListProvidersRequest, ListProvidersResponse, Operator,
    SearchSessionsRequest, SearchSessionsResponse, Session, SessionEvent, WatchActivityRequest,
    end_session_request, session_event,
};
use tokio::sync::broadcast;
use tonic::{Request, Response, Status};

#[derive(Clone)]
pub(crate) struct StandIn {
    client: SessionClient,
    operators: Arc<Mutex<Vec<Operator>>>,
    claims: Arc<Mutex<Vec<String>>>,
    found: Arc<Mutex<Vec<String>>>,
    activities: broadcast::Sender<Activity>,
}

impl StandIn {
    pub(crate) fn new(client: SessionClient) -> Self {
        Self {
            client,
            operators: Arc::default(),
            claims: Arc::default(),
            found: Arc::default(),
            activities: broadcast::channel(16).0,
        }
    }

    pub(crate) fn routes(&self) -> axum::Router {
        let service = OperatorSessionServiceServer::new(self.clone());
        tonic::service::Routes::new(service).into_axum_router()
    }

    /// The operators of all calls so far.
    pub(crate) fn operators(&self) -> Vec<Operator> {
        self.operators.lock().unwrap().clone()
    }

    /// The claims that the last search named.
    pub(crate) fn claims(&self) -> Vec<String> {
        self.claims.lock().unwrap().clone()
    }

    /// The handles that searches find.
    pub(crate) fn find(&self, handles: &[&str]) {
        *self.found.lock().unwrap() = handles.iter().map(|handle| (*handle).to_owned()).collect();
    }

    /// Sends an event to all streams.
    pub(crate) fn send(&self, kind: session_event::Kind, handle: &str) {
        self.activities.send(activity(kind, handle)).unwrap();
    }

    fn remember(&self, operator: Option<&Operator>) {
        self.operators.lock().unwrap().extend(operator.cloned());
    }
}

fn activity(kind: session_event::Kind, handle: &str) -> Activity {
    Activity {
        what: Some(What::Event(SessionEvent {
            kind: kind.into(),
            handle: handle.to_owned(),
            ..SessionEvent::default()
        })),
    }
}

#[tonic::async_trait]
impl OperatorSessionService for StandIn {
    async fn list_providers(
        &self,
        _: Request<ListProvidersRequest>,
    ) -> Result<Response<ListProvidersResponse>, Status> {
        Err(Status::internal("the edge answers this call"))
    }

    async fn search_sessions(
        &self,
        request: Request<SearchSessionsRequest>,
    ) -> Result<Response<SearchSessionsResponse>, Status> {
        let request = request.into_inner();
        self.remember(request.operator.as_ref());
        *self.claims.lock().unwrap() = request.claims;
        let session = |handle: &String| Session {
            handle: handle.clone(),
            ..Session::default()
        };
        Ok(Response::new(SearchSessionsResponse {
            sessions: self.found.lock().unwrap().iter().map(session).collect(),
            ..SearchSessionsResponse::default()
        }))
    }

    async fn end_found_sessions(
        &self,
        request: Request<EndFoundSessionsRequest>,
    ) -> Result<Response<EndFoundSessionsResponse>, Status> {
        let request = request.into_inner();
        self.remember(request.operator.as_ref());
        let Some(By::Handle(handle)) = request.filter.unwrap().by else {
            return Ok(Response::new(EndFoundSessionsResponse::default()));
        };
        let end = EndSessionRequest {
            by: Some(end_session_request::By::Handle(handle)),
            cause: Cause::Operator.into(),
            ..EndSessionRequest::default()
        };
        let ended = self.client.end_session(end).await.unwrap().ended;
        Ok(Response::new(EndFoundSessionsResponse {
            ended_count: ended.into(),
            complete: true,
        }))
    }

    async fn list_endings(
        &self,
        request: Request<ListEndingsRequest>,
    ) -> Result<Response<ListEndingsResponse>, Status> {
        self.remember(request.into_inner().operator.as_ref());
        Ok(Response::new(ListEndingsResponse::default()))
    }

    type WatchActivityStream = Pin<Box<dyn Stream<Item = Result<Activity, Status>> + Send>>;

    async fn watch_activity(
        &self,
        request: Request<WatchActivityRequest>,
    ) -> Result<Response<Self::WatchActivityStream>, Status> {
        self.remember(request.into_inner().operator.as_ref());
        let events = unfold(self.activities.subscribe(), |mut events| async {
            Some((Ok(events.recv().await.ok()?), events))
        });
        let beat = futures_util::stream::iter([Ok(activity(session_event::Kind::Heartbeat, ""))]);
        Ok(Response::new(beat.chain(events).boxed()))
    }
}
