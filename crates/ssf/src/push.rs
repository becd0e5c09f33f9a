//! Pushes security event tokens to a receiver (RFC 8935).
//!
//! Invariants: each push has a time limit. Redirects are not followed, so that a token goes to no other
//! server. At most [`MAX_ANSWER_BYTES`] of an answer are read.
//!
//! Deliberately absent: retries. The caller decides when to retry.

use std::path::Path;
use std::time::Duration;

use oidc::{BuildError, SigningFailed};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Deserialize;
use url::Url;

use crate::retry_after::wait_secs;

/// More than an error and its description need (RFC 8935, section 2.3).
const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// Longest error code that is kept.
const MAX_CODE_BYTES: usize = 64;
/// Longest pause a receiver may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(900);
/// Refusals that an operator of either side can fix: keys, names and credentials. A retry may succeed.
const FIXABLE: [&str; 5] = [
    "invalid_key",
    "invalid_issuer",
    "invalid_audience",
    "authentication_failed",
    "access_denied",
];

/// The endpoint of a receiver. Clones share connections.
#[derive(Clone, Debug)]
pub struct SecurityEventPush {
    client: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
}

/// Why an event was not accepted, and the pause the receiver asks for.
pub type PushFailure = (PushError, Option<Duration>);

/// Why a push failed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The event could not be signed.
    #[error("the event could not be signed")]
    Unsigned(#[from] SigningFailed),
    /// No answer in time, or no connection.
    #[error("the receiver cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// A refusal with a reason (`err`; RFC 8935, section 2.4).
    #[error("the receiver refused the event: {0}")]
    Refused(String),
    /// Another answer.
    #[error("the receiver answered with status {0}")]
    Status(u16),
}

impl PushError {
    /// Whether the refusal is permanent: no operator can fix the reason.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused(code) if !FIXABLE.contains(&code.as_str()))
    }

    /// Whether the receiver refused this event without a reason: it may accept other events.
    #[must_use]
    pub fn is_unexplained(&self) -> bool {
        matches!(self, Self::Status(400..=499))
            && !matches!(self, Self::Status(401 | 403 | 404 | 408 | 425 | 429))
    }
}

#[derive(Deserialize)]
struct Refusal {
    err: String,
}

impl SecurityEventPush {
    /// Pushes to `url`; the certification authorities of `ca_file` are trusted instead of the public ones.
    ///
    /// # Errors
    /// The file of certification authorities has none.
    pub fn new(url: Url, ca_file: Option<&Path>, timeout: Duration) -> Result<Self, BuildError> {
        let client = oidc::client_builder(timeout, ca_file, None)?;
        Ok(Self {
            client: client.build().map_err(BuildError::HttpClient)?,
            url,
            authorization: None,
        })
    }

    /// Adds this `Authorization` to each request; `None` if the value is invalid.
    #[must_use]
    pub fn authorized(self, value: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some(Self {
            authorization: Some(value),
            ..self
        })
    }

    /// Sends a token at `now`, in seconds since the Unix epoch.
    ///
    /// # Errors
    /// The receiver did not accept the event. Unless the error [is final](PushError::is_final), send it again.
    pub async fn send(&self, token: String, now: u64) -> Result<(), PushFailure> {
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/secevent+jwt")
            .header(ACCEPT, "application/json")
            .body(token);
        if let Some(value) = self.authorization.clone() {
            request = request.header(AUTHORIZATION, value);
        }
        let response = request.send().await;
        let response = response.map_err(|source| (PushError::Unreachable(source.without_url()), None))?;
        let status = response.status().as_u16();
        let wait = response.headers().get(RETRY_AFTER);
        let wait = wait.and_then(|value| wait_secs(value.to_str().ok()?, now));
        let code = if status == 400 { code(response).await } else { None };
        judge(status, code, wait)
    }
}

/// The meaning of an answer (RFC 8935, sections 2.2 to 2.4).
fn judge(status: u16, code: Option<String>, wait_secs: Option<u64>) -> Result<(), PushFailure> {
    let error = match code {
        Some(code) => PushError::Refused(code),
        None if (200..=299).contains(&status) => return Ok(()),
        None => PushError::Status(status),
    };
    let pause = wait_secs.map(|secs| Duration::from_secs(secs).min(RETRY_AFTER_MAX));
    Err((error, pause))
}

/// Why the token was refused, if the answer is JSON of a reasonable length, under any content type.
async fn code(mut response: reqwest::Response) -> Option<String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    let Refusal { err } = serde_json::from_slice(&body).ok()?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    ((1..=MAX_CODE_BYTES).contains(&err.len()) && err.bytes().all(is_word)).then_some(err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, code: Option<&str>) -> Result<(), PushFailure> {
        judge(status, code.map(str::to_owned), Some(100_000))
    }

    #[test]
    fn only_an_event_that_no_operator_can_fix_is_given_up() {
        for status in [200, 202, 204] {
            assert!(answer(status, None).is_ok(), "{status}");
        }
        for code in ["invalid_request", "invalid_state", "something_new"] {
            let (refused, _) = answer(400, Some(code)).expect_err("a refusal");
            assert!(refused.is_final(), "{code}");
        }
        for (status, code, unexplained) in [
            (400, Some("invalid_key"), false),
            (400, Some("invalid_audience"), false),
            (401, None, false),
            (404, None, false),
            (429, None, false),
            (302, None, false),
            (500, None, false),
            (503, None, false),
            (400, None, true),
            (413, None, true),
            (422, None, true),
        ] {
            let (error, retry_after) = answer(status, code).expect_err("a failure");
            assert_eq!(retry_after, Some(RETRY_AFTER_MAX));
            assert!(!error.is_final(), "{status}");
            assert_eq!(error.is_unexplained(), unexplained, "{status}");
        }
    }
}
