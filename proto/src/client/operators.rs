//! The stream of `OperatorSessionService`.

use std::sync::Arc;

use futures_util::stream::{Stream, StreamExt as _, unfold};
use tokio::time::{Instant, timeout_at};

use super::SessionClient;
use super::call;
use super::connection::ReplicaConnection;
use super::failure::SessionError;
use crate::v1::{Activity, WatchActivityRequest};

impl SessionClient {
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
}
