//! The configuration of a receiver's stream (SSF 1.0, section 8.1.1).
//!
//! What the file says of a receiver cannot be changed here: its audience, how events reach it, and the most it is told of.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::receiver::{Delivery, EventType, Receiver};
use super::super::stream::StreamState;
use super::answer::{done, shown};
use super::body::Body;
use super::caller::CallingReceiver;
use super::error::ApiError;
use super::verification::MIN_VERIFICATION_INTERVAL_SECS;
use super::{Api, is_own, metadata, object, optional_text, own_stream};

/// Most events a receiver may name; there are four.
const NAMED_MAX: usize = 100;

/// Which stream a request without a body is about.
#[derive(Debug, Deserialize)]
pub(super) struct StreamQuery {
    pub(super) stream_id: Option<String>,
}

/// What a request changes.
#[derive(Default)]
struct WantedConfiguration {
    /// `None` leaves it, `Some(None)` takes it back.
    events_requested: Option<Option<Vec<String>>>,
    description: Option<Option<String>>,
}

impl WantedConfiguration {
    /// Reads what a receiver may supply; how events reach it has to be as the file says.
    fn read(body: &Map<String, Value>, api: &Api, receiver: &Receiver) -> Result<Self, ApiError> {
        if let Some(delivery) = body.get("delivery") {
            let own = delivery_of(api, receiver);
            // What it does not name stays as it is.
            let same = |name: &str| {
                delivery
                    .get(name)
                    .is_none_or(|value| Some(value) == own.get(name))
            };
            if delivery.get("method") != own.get("method") || !same("endpoint_url") {
                return Err(ApiError::Invalid("delivery is as the transmitter's file has it"));
            }
            if delivery
                .get("authorization_header")
                .is_some_and(|value| !value.is_null())
            {
                return Err(ApiError::Invalid(
                    "authorization_header is as the transmitter's file has it",
                ));
            }
        }
        let events_requested = match body.get("events_requested") {
            None => None,
            Some(Value::Null) => Some(None),
            Some(events) => Some(Some(texts(events)?)),
        };
        let description = match body.contains_key("description") {
            false => None,
            true => Some(optional_text(body, "description")?),
        };
        Ok(Self {
            events_requested,
            description,
        })
    }

    fn apply(&self, state: &mut StreamState, receiver: &Receiver) {
        if let Some(events) = &self.events_requested {
            state.is_narrowed = events.is_some();
            let known = |uri: &&String| receiver.events.iter().any(|event| event.uri() == **uri);
            // What is not understood is passed over (section 8.1.1).
            let events = events.iter().flatten().filter(known).cloned();
            state.events_requested = events.collect();
        }
        if let Some(description) = &self.description {
            state.description = description.clone().unwrap_or_default();
        }
    }
}

fn texts(list: &Value) -> Result<Vec<String>, ApiError> {
    let wrong = ApiError::Invalid("events_requested has to be a list of at most 100 URIs");
    let Some(list) = list.as_array().filter(|list| list.len() <= NAMED_MAX) else {
        return Err(wrong);
    };
    let texts: Option<Vec<String>> = list.iter().map(|text| Some(text.as_str()?.to_owned())).collect();
    texts.ok_or(wrong)
}

/// Makes the stream anew that its receiver deleted.
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Body(body): Body,
) -> Result<Response, ApiError> {
    let mut body = if body.is_empty() {
        Map::new()
    } else {
        object(&body)?
    };
    // Absent is a request to poll (section 8.1.1.1).
    let polled = json!({"method": metadata::method_of(&Delivery::Poll)});
    body.entry("delivery").or_insert(polled);
    let now_ms = api.context.keeper.now_ms();
    let state = api.context.streams.edit(&receiver, |state| {
        if !state.deleted {
            return Err(ApiError::Exists);
        }
        *state = StreamState {
            since_ms: now_ms,
            ..StreamState::default()
        };
        WantedConfiguration::read(&body, &api, &receiver)?.apply(state, &receiver);
        Ok(())
    });
    let shown_state = configuration(&api, &receiver, &*state.await?);
    Ok(shown(StatusCode::CREATED, shown_state))
}

/// Shows the stream, or a list of the one there is.
pub(super) async fn read(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Query(query): Query<StreamQuery>,
) -> Result<Response, ApiError> {
    let state = api.context.streams.read(&receiver).await?;
    let one = configuration(&api, &receiver, &state);
    let body = match query.stream_id {
        None if state.deleted => json!([]),
        None => json!([one]),
        Some(id) => {
            is_own(&id, &receiver)?;
            if state.deleted {
                return Err(ApiError::NoStream);
            }
            one
        }
    };
    Ok(shown(StatusCode::OK, body))
}

/// Changes what the request names.
pub(super) async fn update(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Body(body): Body,
) -> Result<Response, ApiError> {
    change(&api, &receiver, &object(&body)?, false).await
}

/// Changes everything that the receiver supplies.
pub(super) async fn replace(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Body(body): Body,
) -> Result<Response, ApiError> {
    change(&api, &receiver, &object(&body)?, true).await
}

async fn change(
    api: &Api,
    receiver: &Receiver,
    body: &Map<String, Value>,
    is_whole: bool,
) -> Result<Response, ApiError> {
    own_stream(body, receiver)?;
    let mut wanted = WantedConfiguration::read(body, api, receiver)?;
    if is_whole {
        wanted.events_requested.get_or_insert(None);
        wanted.description.get_or_insert(None);
    }
    let state = api.context.streams.edit(receiver, |state| {
        if state.deleted {
            return Err(ApiError::NoStream);
        }
        let before = configuration(api, receiver, state);
        for name in SUPPLIED {
            if body.get(name).is_some_and(|told| Some(told) != before.get(name)) {
                return Err(ApiError::Invalid("what the transmitter supplies is another"));
            }
        }
        wanted.apply(state, receiver);
        Ok(())
    });
    Ok(shown(
        StatusCode::OK,
        configuration(api, receiver, &*state.await?),
    ))
}

/// What we supply, and what has to be so where it is repeated (section 8.1.1.3).
const SUPPLIED: [&str; 5] = [
    "iss",
    "aud",
    "events_supported",
    "events_delivered",
    "min_verification_interval",
];

/// Deletes the stream: nothing is told any more, and what waits goes.
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Query(query): Query<StreamQuery>,
) -> Result<Response, ApiError> {
    is_own(&query.stream_id.unwrap_or_default(), &receiver)?;
    let deleted = api.context.streams.edit(&receiver, |state| {
        if state.deleted {
            return Err(ApiError::NoStream);
        }
        *state = StreamState {
            deleted: true,
            ..StreamState::default()
        };
        Ok(())
    });
    deleted.await?;
    tracing::info!(receiver = receiver.id, "a receiver has deleted its stream");
    Ok(done())
}

fn delivery_of(api: &Api, receiver: &Receiver) -> Value {
    let method = metadata::method_of(&receiver.delivery);
    let url = match &receiver.delivery {
        Delivery::Push(to) => to.url().to_string(),
        Delivery::Poll => format!("{}/poll/{}", api.base, receiver.stream_id),
    };
    json!({"method": method, "endpoint_url": url})
}

/// The stream as its receiver sees it.
fn configuration(api: &Api, receiver: &Receiver, state: &StreamState) -> Value {
    let uris = |events: &mut dyn Iterator<Item = &EventType>| -> Vec<String> {
        events.map(|event| event.uri()).collect()
    };
    let supported = uris(&mut receiver.events.iter());
    let delivered = uris(&mut receiver.events.iter().filter(|event| state.wants(**event)));
    let mut configuration = json!({
        "stream_id": receiver.stream_id,
        "iss": api.context.receivers.issuer,
        "aud": receiver.audience,
        "delivery": delivery_of(api, receiver),
        "events_requested": if state.is_narrowed { &state.events_requested } else { &supported },
        "events_supported": supported,
        "events_delivered": delivered,
        "min_verification_interval": MIN_VERIFICATION_INTERVAL_SECS,
    });
    if !state.description.is_empty() {
        configuration["description"] = json!(state.description);
    }
    configuration
}
