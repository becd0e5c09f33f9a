//! The calls of `OperatorSessionService`.

use std::sync::Arc;

use futures_util::stream::{Stream, StreamExt as _, unfold};
use prost::Message;
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status};

use super::SessionClient;
use super::call::{self, Repeat};
use super::connection::{OperatorService, ReplicaConnection};
use super::failure::SessionError;
use crate::v1::{
    Activity, EndFoundSessionsRequest, EndFoundSessionsResponse, ListEndingsRequest, ListEndingsResponse,
    SearchSessionsRequest, SearchSessionsResponse, WatchActivityRequest,
};

/// A call examines or ends many sessions, so it has a longer deadline than other calls.
const OPERATOR_DEADLINE_FACTOR: u32 = 4;

impl SessionClient {
    /// Finds sessions of all people of a provider.
    ///
    /// # Errors
    /// The reason that the service gave, or that it was not reached within the deadline.
    pub async fn search_sessions(
        &self,
        request: SearchSessionsRequest,
    ) -> Result<SearchSessionsResponse, SessionError> {
        let method = "session.v1.OperatorSessionService/SearchSessions";
        let send =
            |mut service: OperatorService, request| async move { service.search_sessions(request).await };
        self.call_operators(method, &request, send).await
    }

    /// Ends the sessions of a filter. Repeat it until `complete` is true.
    ///
    /// # Errors
    /// The reason that the service gave, or that it was not reached within the deadline.
    pub async fn end_found_sessions(
        &self,
        request: EndFoundSessionsRequest,
    ) -> Result<EndFoundSessionsResponse, SessionError> {
        let method = "session.v1.OperatorSessionService/EndFoundSessions";
        let send =
            |mut service: OperatorService, request| async move { service.end_found_sessions(request).await };
        self.call_operators(method, &request, send).await
    }

    /// Lists why a person's sessions ended.
    ///
    /// # Errors
    /// The reason that the service gave, or that it was not reached within the deadline.
    pub async fn list_endings(
        &self,
        request: ListEndingsRequest,
    ) -> Result<ListEndingsResponse, SessionError> {
        let method = "session.v1.OperatorSessionService/ListEndings";
        let send = |mut service: OperatorService, request| async move { service.list_endings(request).await };
        self.call_operators(method, &request, send).await
    }

    /// Watches a provider's sessions on one replica. The stream ends with that replica's connection, or with
    /// the error that the service gave.
    ///
    /// # Errors
    /// The reason that the service gave, or that it was not reached within the deadline.
    pub async fn watch_activity(
        &self,
        request: WatchActivityRequest,
    ) -> Result<impl Stream<Item = Result<Activity, SessionError>> + Send + Unpin + use<>, SessionError> {
        let until = Instant::now() + self.pool.settings.deadline;
        let picked = timeout_at(until, self.pool.pick())
            .await
            .map_err(|_elapsed| SessionError::late())??;
        let open = |connection: Arc<ReplicaConnection>, request| async move {
            connection.operators().watch_activity(request).await
        };
        let opened = call::stream(&self.pool, &picked, until, request, open).await?;
        let read = |mut opened: call::OpenedStream<Activity>| async move {
            let item = opened.events.message().await.transpose()?;
            Some((item.map_err(SessionError::from), opened))
        };
        Ok(unfold(opened, read).boxed())
    }

    /// Sends a unary call to the service for operators.
    async fn call_operators<Q, R, F>(
        &self,
        method: &'static str,
        request: &Q,
        send: impl Fn(OperatorService, Request<Q>) -> F,
    ) -> Result<R, SessionError>
    where
        Q: Message + Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let (pool, send) = (&self.pool, &send);
        let deadline = pool.settings.deadline * OPERATOR_DEADLINE_FACTOR;
        let attempt = |connection: Arc<ReplicaConnection>, until| async move {
            let answer = send(connection.operators(), pool.request(request.clone(), until)).await;
            answer.map(Response::into_inner)
        };
        call::unary(pool, method, deadline, Repeat::Safe, request, attempt).await
    }
}
