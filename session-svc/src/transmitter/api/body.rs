//! The body of a request, which a receiver has to send in time.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tokio::time::timeout;

/// How long a receiver has for it.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The whole body.
pub(super) struct Body(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        match timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await {
            Ok(Ok(body)) => Ok(Self(body)),
            Ok(Err(rejection)) => Err(rejection.into_response()),
            Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_in_time_is_not_waited_for() {
        let endless = axum::body::Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let read = Body::from_request(Request::new(endless), &()).await;
        assert_eq!(read.err().unwrap().status(), StatusCode::REQUEST_TIMEOUT);
        let whole = Request::new(axum::body::Body::from("{}"));
        let read = Body::from_request(whole, &()).await;
        assert_eq!(read.ok().unwrap().0, "{}");
    }
}
