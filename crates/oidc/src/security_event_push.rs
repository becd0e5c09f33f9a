//! Pushing security event tokens to a receiver (RFC 8935).
//!
//! Invariants: a receiver has a bounded time; no redirect is followed, so that a token goes nowhere else; what it answers is looked at
//! where it refuses a token, and no further than [`MAX_ANSWER_BYTES`].
//!
//! Deliberately absent: when a token is sent again, which is the caller's.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Deserialize;
use url::Url;

use crate::http_client::builder;
use crate::retry_after::wait_secs;
use crate::{BuildError, ClientAuth, Credentials, ProviderSettings};

/// More than an error and its description need (RFC 8935, section 2.3).
const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// Longest error code that is told.
const MAX_CODE_BYTES: usize = 64;

/// Where tokens are pushed to, and how. Clones share connections.
#[derive(Clone, Debug)]
pub struct SecurityEventPush {
    client: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
}

/// What a receiver answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAnswer {
    /// The status.
    pub status: u16,
    /// How long it wants to be left alone, in seconds.
    pub retry_after_secs: Option<u64>,
    /// Why it refused the token (`err`; RFC 8935, section 2.4); `None` where it does not say so as it has to.
    pub code: Option<String>,
}

/// A receiver could not be told.
#[derive(Debug, thiserror::Error)]
pub enum PushFault {
    /// It did not answer in time.
    #[error("the receiver did not answer in time")]
    Timeout,
    /// It could not be reached, or the connection broke.
    #[error("the receiver could not be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The value is none of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not the value of a header")]
pub struct NoHeaderValue;

#[derive(Deserialize)]
struct Refusal {
    err: String,
}

impl SecurityEventPush {
    /// Pushes to `url`; the certification authorities of `ca_file` are trusted instead of the public ones.
    ///
    /// # Errors
    /// A file of certification authorities without any.
    pub fn new(url: Url, ca_file: Option<PathBuf>, timeout: Duration) -> Result<Self, BuildError> {
        let mut reached = ProviderSettings::new(url.as_str(), "");
        reached.http_timeout = timeout;
        reached.ca_file = ca_file;
        let credentials = Credentials {
            auth: ClientAuth::None,
            request_keys: None,
            dpop_key: None,
            proxy: None,
        };
        let client = builder(&reached, &credentials)?;
        Ok(Self {
            client: client.build().map_err(BuildError::HttpClient)?,
            url,
            authorization: None,
        })
    }

    /// The same with a value of `Authorization` in each request.
    ///
    /// # Errors
    /// It is none.
    pub fn authorized(self, value: &str) -> Result<Self, NoHeaderValue> {
        let mut value = HeaderValue::from_str(value).map_err(|_| NoHeaderValue)?;
        value.set_sensitive(true);
        Ok(Self {
            authorization: Some(value),
            ..self
        })
    }

    /// Where to.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a token at `now`, in seconds since the Unix epoch.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn send(&self, token: String, now: u64) -> Result<PushAnswer, PushFault> {
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/secevent+jwt")
            .header(ACCEPT, "application/json")
            .body(token);
        if let Some(value) = self.authorization.clone() {
            request = request.header(AUTHORIZATION, value);
        }
        let response = request.send().await.map_err(fault)?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| wait_secs(value.to_str().ok()?, now));
        let code = if status == 400 { code(response).await } else { None };
        Ok(PushAnswer {
            status,
            retry_after_secs: retry_after,
            code,
        })
    }
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
    let refusal: Refusal = serde_json::from_slice(&body).ok()?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let told = !refusal.err.is_empty() && refusal.err.len() <= MAX_CODE_BYTES;
    (told && refusal.err.bytes().all(is_word)).then_some(refusal.err)
}

fn fault(source: reqwest::Error) -> PushFault {
    if source.is_timeout() {
        PushFault::Timeout
    } else {
        PushFault::Unreachable(source.without_url().into())
    }
}
