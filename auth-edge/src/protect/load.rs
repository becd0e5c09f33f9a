//! How much is worked on at once: what is more is told to come back, before it costs anything.
//!
//! A request counts until its answer begins; streams, downloads and WebSockets that have begun do not. Deliberately
//! absent: queues; somebody who waits in one for long has given up when their turn comes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::Semaphore;

use crate::errors::Failure;

/// Places for requests; `None` is no limit.
#[derive(Debug, Clone)]
pub struct Places(Option<Arc<Semaphore>>);

impl Places {
    /// So many; 0 is no limit.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self((count > 0).then(|| Arc::new(Semaphore::new(count))))
    }
}

/// The layer for the whole router.
pub async fn layer(State(places): State<Places>, request: Request, next: Next) -> Response {
    let Some(places) = places.0 else {
        return next.run(request).await;
    };
    match places.try_acquire() {
        Ok(_place) => next.run(request).await,
        Err(_full) => Failure::Overloaded.into_response(),
    }
}
