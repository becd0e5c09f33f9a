//! The HTTP side: records each request, then answers as scripted.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{RawQuery, State as Shared};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::ScriptedTransmitter;
use super::memory::{Memory, Refused, State, Stream};
use super::script::{TransmitterEndpoint as Endpoint, TransmitterScript};
use crate::Recorded;
use crate::script::patch;
use crate::server::{oauth_error, recorded, scripted_answer, unauthorized_client};
use crate::token::is_our_client;

const POLL: &str = "urn:ietf:rfc:8936";
const VERIFICATION: &str = "https://schemas.openid.net/secevent/ssf/event-type/verification";

pub(crate) fn router(state: Arc<State>) -> Router {
    let handler = |Shared(state): Shared<Arc<State>>,
                   method: Method,
                   uri: Uri,
                   RawQuery(query): RawQuery,
                   headers: HeaderMap,
                   body: Bytes| async move {
        let request = recorded(&method, query.as_deref(), &headers, &body);
        answer(&state, uri.path(), request).await
    };
    Router::new().fallback(handler).with_state(state)
}

async fn answer(state: &State, path: &str, request: Recorded) -> Response {
    let is_poll = path.starts_with(Endpoint::Poll.path());
    let named = Endpoint::ALL.into_iter().find(|endpoint| endpoint.path() == path);
    let Some(endpoint) = named.or_else(|| is_poll.then_some(Endpoint::Poll)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let scripted = {
        let script = &mut state.lock().script;
        let once = script.next.get_mut(&endpoint).and_then(|next| next.pop_front());
        once.or_else(|| script.answers.get(&endpoint).cloned())
    };
    state.requests.record(endpoint, request.clone());
    state.pass(endpoint).await;
    match scripted {
        Some(answer) => scripted_answer(answer).await,
        None => well_behaved(state, endpoint, path, &request).await,
    }
}

async fn well_behaved(state: &State, endpoint: Endpoint, path: &str, request: &Recorded) -> Response {
    match endpoint {
        Endpoint::Configuration => {
            let mut document = TransmitterScript::configuration(&state.issuer);
            patch(&mut document, &state.lock().script.metadata);
            return Json(document).into_response();
        }
        Endpoint::Jwks => return Json(json!({ "keys": state.lock().keys.public() })).into_response(),
        Endpoint::Token => return token(&mut state.lock(), request),
        Endpoint::Streams | Endpoint::Status | Endpoint::Verification | Endpoint::Poll => {}
    }
    if !is_authorized(&state.lock(), request) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match endpoint {
        Endpoint::Status => status(&mut state.lock(), request),
        Endpoint::Verification => verification(state, request),
        Endpoint::Poll => poll(state, path, request).await,
        _ => streams(state, request),
    }
}

fn is_authorized(memory: &Memory, request: &Recorded) -> bool {
    let token = request
        .header("authorization")
        .and_then(|header| header.strip_prefix("Bearer "));
    token.is_some_and(|token| token == ScriptedTransmitter::TOKEN || memory.tokens.contains(token))
}

fn token(memory: &mut Memory, request: &Recorded) -> Response {
    if !is_our_client(request) {
        return unauthorized_client();
    }
    if request.param("grant_type") != Some("client_credentials") {
        return oauth_error("unsupported_grant_type");
    }
    let token = memory.fresh("access");
    memory.tokens.insert(token.clone());
    let mut document = json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600 });
    if let Value::Object(members) = &mut document {
        patch(members, &memory.script.token);
    }
    Json(document).into_response()
}

fn said(memory: &Memory, stream: &Value) -> Value {
    let mut said = stream.clone();
    if let Value::Object(members) = &mut said {
        patch(members, &memory.script.stream);
    }
    said
}

fn streams(state: &State, request: &Recorded) -> Response {
    let memory = &mut *state.lock();
    let wanted = request.json();
    let id = request
        .param("stream_id")
        .or_else(|| wanted["stream_id"].as_str());
    match (request.method.as_str(), id) {
        ("POST", None) => {
            let stream = new_stream(memory, &state.issuer, &wanted);
            let answer = (StatusCode::CREATED, Json(said(memory, &stream.document)));
            let id = stream.document["stream_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            memory.streams.insert(id, stream);
            answer.into_response()
        }
        ("GET", None) => {
            let all = memory
                .streams
                .values()
                .map(|stream| said(memory, &stream.document));
            Json(all.collect::<Vec<Value>>()).into_response()
        }
        ("GET", Some(id)) => match memory.streams.get(id) {
            Some(stream) => Json(said(memory, &stream.document)).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        ("PATCH", Some(id)) => {
            let Some(stream) = memory.streams.get_mut(id) else {
                return StatusCode::NOT_FOUND.into_response();
            };
            for name in ["events_requested", "description", "delivery"] {
                if let Some(value) = wanted.get(name) {
                    stream.document[name] = value.clone();
                }
            }
            let document = stream.document.clone();
            Json(said(memory, &document)).into_response()
        }
        ("DELETE", Some(id)) => match memory.streams.remove(id) {
            Some(_) => StatusCode::NO_CONTENT.into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn new_stream(memory: &mut Memory, issuer: &str, wanted: &Value) -> Stream {
    let id = memory.fresh("stream");
    let mut delivery = wanted["delivery"].clone();
    let mut authorization_header = None;
    if delivery["method"] == POLL {
        delivery["endpoint_url"] = json!(format!("{issuer}{}/{id}", Endpoint::Poll.path()));
    } else if let Value::Object(members) = &mut delivery {
        let header = members.remove("authorization_header");
        authorization_header = header.and_then(|header| header.as_str().map(str::to_owned));
    }
    let document = json!({
        "stream_id": id, "iss": issuer, "aud": memory.script.audience, "delivery": delivery,
        "events_requested": wanted["events_requested"], "events_delivered": wanted["events_requested"],
        "description": wanted["description"], "min_verification_interval": 60,
    });
    Stream {
        document,
        authorization_header,
        status: "enabled".to_owned(),
        reason: Value::Null,
    }
}

fn status(memory: &mut Memory, request: &Recorded) -> Response {
    let wanted = request.json();
    let id = request
        .param("stream_id")
        .or_else(|| wanted["stream_id"].as_str());
    let id = id.unwrap_or_default();
    let Some(stream) = memory.streams.get_mut(id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Some(status) = wanted["status"].as_str() {
        stream.status = status.to_owned();
        stream.reason = wanted["reason"].clone();
    }
    let mut said = json!({ "stream_id": id, "status": stream.status, "reason": stream.reason });
    if let Value::Object(members) = &mut said {
        patch(members, &memory.script.status);
    }
    Json(said).into_response()
}

fn verification(state: &State, request: &Recorded) -> Response {
    let wanted = request.json();
    let id = wanted["stream_id"].as_str().unwrap_or_default();
    let mut memory = state.lock();
    let Some(stream) = memory.streams.get(id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let polls = stream.document["delivery"]["method"] == POLL;
    if memory.script.verify && polls {
        let mut claims = memory.event_claims(&state.issuer);
        claims.insert("sub_id".to_owned(), json!({ "format": "opaque", "id": id }));
        let payload = json!({ (VERIFICATION): { "state": wanted["state"] } });
        claims.insert("events".to_owned(), payload);
        let jti = claims["jti"].as_str().unwrap_or_default().to_owned();
        let raw = memory.sign(&serde_json::Map::new(), claims);
        memory.offered.insert(jti, json!(raw));
    }
    drop(memory);
    state.changed();
    StatusCode::NO_CONTENT.into_response()
}

/// Takes what is told, then waits for events, unless it is not to.
async fn poll(state: &State, path: &str, request: &Recorded) -> Response {
    let wanted = request.json();
    let mut changes = state.changes.subscribe();
    {
        let memory = &mut *state.lock();
        let id = path.rsplit('/').next().unwrap_or_default();
        if !memory.streams.contains_key(id) {
            return StatusCode::NOT_FOUND.into_response();
        }
        for jti in wanted["ack"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            memory.offered.remove(jti);
            memory.acknowledged.push(jti.to_owned());
        }
        for (jti, error) in wanted["setErrs"].as_object().into_iter().flatten() {
            memory.offered.remove(jti);
            let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            memory.refused.push(Refused {
                jti: jti.clone(),
                err: text("err"),
                description: text("description"),
            });
        }
    }
    state.changed();
    changes.mark_unchanged();
    let most = wanted["maxEvents"]
        .as_u64()
        .and_then(|most| usize::try_from(most).ok());
    let wait = state.lock().script.wait;
    if wanted["returnImmediately"] != true {
        let any = changes.wait_for(|_| !state.lock().offered.is_empty());
        // Nothing came in time: an answer without events.
        let _ = tokio::time::timeout(wait, any).await;
    }
    let memory = state.lock();
    let offered = memory.offered.iter().take(most.unwrap_or(usize::MAX));
    let sets: serde_json::Map<String, Value> = offered.map(|(jti, raw)| (jti.clone(), raw.clone())).collect();
    let more = sets.len() < memory.offered.len();
    let mut said = json!({ "sets": sets, "moreAvailable": more });
    if let Value::Object(members) = &mut said {
        patch(members, &memory.script.poll);
    }
    Json(said).into_response()
}
