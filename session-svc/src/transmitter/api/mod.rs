//! The HTTP API of receivers: our metadata and keys, and of each receiver its own stream (SSF 1.0, sections 7 and 8; RFC 8936).
//!
//! Invariants: metadata and keys are public, everything else is shown to the receiver whose token is there; what is not of its stream does not
//! exist for it; bodies are bounded in size and time.

mod answer;
mod body;
mod caller;
mod configuration;
mod error;
mod metadata;
mod polling;
mod status;
mod verification;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use url::Url;

use self::error::ApiError;
use super::Context;
use super::queue::Queue;
use super::receiver::Receiver;

/// Bytes of a body at most: acknowledgements of a thousand events fit well.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// Requests of one receiver that wait for events at once; others are answered at once.
const WAITING_MAX: usize = 8;

/// What the handlers share.
struct Api {
    context: Arc<Context>,
    /// Our address, without a slash at its end.
    base: String,
    /// By the receiver's id.
    polled: HashMap<String, Polled>,
}

/// What a receiver's requests for events share.
struct Polled {
    queue: Mutex<Queue>,
    waiting: Semaphore,
}

/// The routes, under the path of our address.
pub(super) fn router(context: Arc<Context>) -> Router {
    let base = context.receivers.issuer.trim_end_matches('/').to_owned();
    let path = Url::parse(&base).map_or(String::new(), |url| url.path().trim_end_matches('/').to_owned());
    let polled = |receiver: &Arc<Receiver>| {
        let polled = Polled {
            queue: Mutex::new(Queue::new(receiver)),
            waiting: Semaphore::new(WAITING_MAX),
        };
        (receiver.id.clone(), polled)
    };
    let api = Api {
        polled: context.receivers.all.iter().map(polled).collect(),
        base,
        context,
    };
    let at = |name: &str| format!("{path}/{name}");
    let configuration = get(configuration::read)
        .post(configuration::create)
        .patch(configuration::update)
        .put(configuration::replace)
        .delete(configuration::delete);
    Router::new()
        .route(
            &format!("/.well-known/ssf-configuration{path}"),
            get(metadata::show),
        )
        .route(&at("jwks.json"), get(metadata::keys))
        .route(&at("streams"), configuration)
        .route(&at("status"), get(status::read).post(status::update))
        .route(&at("verification"), post(verification::request))
        .route(&at("poll/{stream_id}"), post(polling::poll))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(Arc::new(api))
}

/// A body that has to be a JSON object.
fn object(body: &[u8]) -> Result<serde_json::Map<String, Value>, ApiError> {
    serde_json::from_slice(body).map_err(|_| ApiError::Invalid("the body is no JSON object"))
}

/// A member that has to be a text where it is there; `null` is none.
fn optional_text(object: &serde_json::Map<String, Value>, name: &str) -> Result<Option<String>, ApiError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= TEXT_BYTES_MAX => Ok(Some(text.clone())),
        Some(_) => Err(ApiError::Invalid(
            "a member has to be a text of at most 1024 bytes",
        )),
    }
}

/// Longest text of a receiver that is kept.
const TEXT_BYTES_MAX: usize = 1_024;

/// The stream that a body names, which has to be the receiver's own.
fn own_stream(object: &serde_json::Map<String, Value>, receiver: &Receiver) -> Result<(), ApiError> {
    match object.get("stream_id") {
        Some(Value::String(id)) => is_own(id, receiver),
        _ => Err(ApiError::Invalid("stream_id is required")),
    }
}

fn is_own(stream_id: &str, receiver: &Receiver) -> Result<(), ApiError> {
    if stream_id == receiver.stream_id {
        Ok(())
    } else {
        Err(ApiError::NoStream)
    }
}
