//! Events fetched from a transmitter (RFC 8936), with which it is told what has become of those before.

use std::time::Duration;

use serde_json::{Map, Value, json};
use url::Url;

use crate::endpoint::is_usable_of;
use crate::http_client::BearerMethod;
use crate::signal_access::SignalRequest;
use crate::signal_management::{document, malformed};
use crate::{MAX_SECURITY_EVENT_BYTES, SecurityEventErrorCode, Transmitter, TransmitterError};

/// What errors and whoever measures requests call the address to poll at, which is a stream's and not in the metadata.
const POLL_ENDPOINT: &str = "poll_endpoint";

/// Most events that are asked for at once.
pub const MAX_POLLED_EVENTS: usize = 100;
/// How long a poll waits for events (RFC 8936 section 2.2). Proxies give up connections on which nothing happens after a minute, and
/// so do transmitters: this is a little longer, so that it is they who end it.
pub const LONG_POLL: Duration = Duration::from_secs(75);

/// Longest identifier of an event that is looked at, in bytes: it is kept.
const MAX_TOKEN_ID_BYTES: usize = 512;
/// What stands around an event in an answer.
const AROUND_EVENT_BYTES: usize = 1_024;
/// Most bytes of an answer, whatever was asked for.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// What a receiver asks for, and tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollRequest<'a> {
    /// Most events wanted, up to [`MAX_POLLED_EVENTS`]; 0 only tells, and is answered at once.
    pub max_events: usize,
    /// Whether to answer at once where there are no events, instead of waiting for up to [`LONG_POLL`].
    pub return_immediately: bool,
    /// Identifiers (`jti`) of events that were taken.
    pub ack: &'a [String],
    /// Events that were refused.
    pub set_errs: &'a [RefusedEvent],
}

/// An event that was refused (RFC 8936 section 2.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEvent {
    /// Its identifier, as the transmitter named it.
    pub jti: String,
    /// Why.
    pub code: SecurityEventErrorCode,
    /// Why, in English; nothing that is secret.
    pub description: String,
}

/// What a transmitter has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollResponse {
    /// Events, each with the identifier the transmitter names it by; nothing of them is verified.
    pub sets: Vec<PolledEvent>,
    /// Whether there are more of them now.
    pub more_available: bool,
}

/// An event of an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct PolledEvent {
    /// What the transmitter names it by: the `jti` of the token, if it is honest.
    pub jti: String,
    /// The token; `None` where there is none, or where it or its identifier is too long to be looked at: it is to be refused.
    pub raw: Option<String>,
}

impl std::fmt::Debug for PolledEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolledEvent")
            .field("jti", &self.jti)
            .finish_non_exhaustive()
    }
}

impl Transmitter {
    /// Fetches events, and tells what has become of those before; `now` in seconds since the Unix epoch. What was told and not
    /// answered is told again with the next request: the transmitter may have it, or not.
    ///
    /// # Errors
    /// Nobody knows whether the transmitter took what was told. [`TransmitterError::is_timeout`] where no event came in time;
    /// [`TransmitterError::is_too_large`] where fewer events have to be asked for.
    pub async fn poll(
        &self,
        url: &Url,
        request: &PollRequest<'_>,
        now: u64,
    ) -> Result<PollResponse, TransmitterError> {
        if !is_usable_of(&self.settings().issuer, url) {
            return Err(TransmitterError::InsecurePollEndpoint);
        }
        let max_events = request.max_events.min(MAX_POLLED_EVENTS);
        let only_tells = max_events == 0;
        // Section 2.4.2.
        let at_once = request.return_immediately || only_tells;
        let timeout = self.settings().http_timeout;
        let asked = SignalRequest {
            endpoint: POLL_ENDPOINT,
            method: BearerMethod::Post(body(request, max_events, at_once)),
            url,
            timeout: if at_once { timeout } else { timeout.max(LONG_POLL) },
            max_bytes: most_bytes(max_events),
            done: if only_tells { &[200, 202, 204] } else { &[200] },
        };
        let answer = self.ask(asked, now).await?;
        if only_tells {
            return Ok(PollResponse::default());
        }
        let document = document(&answer)?;
        response(&document, max_events).ok_or_else(|| malformed(&answer))
    }
}

/// Most bytes of an answer with that many events.
fn most_bytes(max_events: usize) -> usize {
    let events = max_events.saturating_add(1);
    events
        .saturating_mul(MAX_SECURITY_EVENT_BYTES + AROUND_EVENT_BYTES)
        .min(MAX_ANSWER_BYTES)
}

fn body(request: &PollRequest<'_>, max_events: usize, at_once: bool) -> Value {
    let mut body = json!({ "maxEvents": max_events, "returnImmediately": at_once });
    if !request.ack.is_empty() {
        body["ack"] = json!(request.ack);
    }
    if !request.set_errs.is_empty() {
        let errors = request.set_errs.iter().map(|refused| {
            let error = json!({ "err": refused.code.name(), "description": refused.description });
            (refused.jti.clone(), error)
        });
        body["setErrs"] = Value::Object(errors.collect::<Map<String, Value>>());
    }
    body
}

/// Reads an answer. Events beyond those asked for are left to the next one: nobody acknowledges them.
pub(crate) fn response(document: &Value, max_events: usize) -> Option<PollResponse> {
    let sets = document.get("sets")?.as_object()?;
    let events = sets.iter().take(max_events).map(|(jti, raw)| {
        let raw = raw.as_str().filter(|_| jti.len() <= MAX_TOKEN_ID_BYTES);
        let raw = raw.filter(|raw| raw.len() <= MAX_SECURITY_EVENT_BYTES);
        PolledEvent {
            jti: jti.clone(),
            raw: raw.map(str::to_owned),
        }
    });
    let more_available = match document.get("moreAvailable") {
        None | Some(Value::Null) => false,
        Some(told) => told.as_bool()?,
    };
    Some(PollResponse {
        sets: events.collect(),
        more_available: more_available || sets.len() > max_events,
    })
}
