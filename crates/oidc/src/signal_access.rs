//! Requests to a transmitter by which a receiver proves who it is, and what the status of an answer means.

use std::time::Duration;

use url::Url;

use crate::http_client::{BearerMethod, BearerRequest, ProviderResponse};
use crate::retry_after::wait_secs;
use crate::{Transmitter, TransmitterError};

/// One request.
pub(crate) struct SignalRequest<'a> {
    pub(crate) endpoint: &'static str,
    pub(crate) method: BearerMethod,
    pub(crate) url: &'a Url,
    pub(crate) timeout: Duration,
    pub(crate) max_bytes: usize,
    /// Statuses that mean that it was done.
    pub(crate) done: &'static [u16],
}

impl Transmitter {
    /// Asks the transmitter for something. A token that is not taken is fetched anew, once; `now` in seconds since the Unix epoch.
    ///
    /// # Errors
    /// It was not done, or nobody knows whether it was.
    pub(crate) async fn ask(
        &self,
        request: SignalRequest<'_>,
        now: u64,
    ) -> Result<ProviderResponse, TransmitterError> {
        let reach = self.reach();
        let (http, credentials) = (&reach.http, &reach.credentials);
        let token_timeout = self.settings().http_timeout;
        let token = credentials.token(http, token_timeout, None, now).await?;
        let mut sent = BearerRequest {
            endpoint: request.endpoint,
            method: request.method,
            url: request.url,
            bearer: token.as_ref().map(|token| token.secret().as_str()),
            timeout: request.timeout,
            max_bytes: request.max_bytes,
        };
        let mut answer = http.with_bearer(&sent).await;
        let is_refused = matches!(&answer, Ok(answer) if answer.status == 401);
        let anew;
        if is_refused && credentials.can_fetch() {
            anew = credentials
                .token(http, token_timeout, token.as_ref(), now)
                .await?;
            sent.bearer = anew.as_ref().map(|token| token.secret().as_str());
            answer = http.with_bearer(&sent).await;
        }
        let answer = answer.map_err(TransmitterError::Unanswered)?;
        if request.done.contains(&answer.status) {
            return Ok(answer);
        }
        Err(refused(&answer, now))
    }
}

/// What an answer means by which nothing was done (SSF 1.0 section 8.1, RFC 8936 section 2.5.1).
fn refused(answer: &ProviderResponse, now: u64) -> TransmitterError {
    match answer.status {
        202 => TransmitterError::Pending,
        400 => TransmitterError::Rejected,
        401 => TransmitterError::Unauthorized,
        403 => TransmitterError::Forbidden,
        404 => TransmitterError::NoSuchStream,
        409 => TransmitterError::StreamExists,
        429 => TransmitterError::TooManyRequests {
            retry_after_secs: answer
                .retry_after
                .as_deref()
                .and_then(|after| wait_secs(after, now)),
        },
        _ => TransmitterError::Unanswered(answer.status_error()),
    }
}
