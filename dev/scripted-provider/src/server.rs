//! The HTTP side: records each request, waits while held, then answers as scripted.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State as Shared};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router, routing};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::script::{Answer, patch};
use crate::signing::ALGORITHMS;
use crate::state::{Held, State};
use crate::{Endpoint, Recorded, authorize, dpop, token, userinfo};

/// All endpoints.
pub(crate) fn router(state: Arc<State>) -> Router {
    let all = Endpoint::ALL.into_iter();
    // Issuers with a path have their metadata below it.
    let below = [
        (Endpoint::Discovery, "/{a}/.well-known/openid-configuration"),
        (Endpoint::Discovery, "/{a}/{b}/.well-known/openid-configuration"),
        (
            Endpoint::OauthMetadata,
            "/.well-known/oauth-authorization-server/{a}",
        ),
    ];
    all.map(|endpoint| (endpoint, endpoint.path()))
        .chain(below)
        .fold(Router::new(), |router, (endpoint, path)| {
            let handler = move |Shared(state): Shared<Arc<State>>,
                                method: Method,
                                RawQuery(query): RawQuery,
                                headers: HeaderMap,
                                body: Bytes| async move {
                let request = recorded(&method, query.as_deref(), &headers, &body);
                answer(&state, endpoint, request).await
            };
            router.route(path, routing::any(handler))
        })
        .with_state(state)
}

async fn answer(state: &State, endpoint: Endpoint, request: Recorded) -> Response {
    state.requests.record(endpoint, request.clone());
    state.pass(endpoint, Held::Requests).await;
    let delay = state.lock().script.delays.get(&endpoint).copied();
    if let Some(delay) = delay {
        tokio::time::sleep(delay).await;
    }
    let response = respond(state, endpoint, &request).await;
    state.pass(endpoint, Held::Answers).await;
    response
}

async fn respond(state: &State, endpoint: Endpoint, request: &Recorded) -> Response {
    let scripted = state.lock().script.answers.get(&endpoint).cloned();
    match scripted {
        Some(answer) => scripted_answer(answer).await,
        None => well_behaved(state, endpoint, request),
    }
}

/// A scripted answer.
pub(crate) async fn scripted_answer(answer: Answer) -> Response {
    let Answer::Http {
        status,
        headers,
        body,
    } = answer
    else {
        return std::future::pending().await;
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response
        .body(Body::from(body))
        .expect("a scripted answer is legal HTTP")
}

fn well_behaved(state: &State, endpoint: Endpoint, request: &Recorded) -> Response {
    if let Some(refusal) = dpop::refusal(state, endpoint, request) {
        return refusal;
    }
    match endpoint {
        Endpoint::Discovery => Json(metadata(state)).into_response(),
        Endpoint::OauthMetadata => StatusCode::NOT_FOUND.into_response(),
        Endpoint::Jwks => Json(jwks(state)).into_response(),
        Endpoint::Authorize => authorize::authorize(state, request),
        Endpoint::Par if token::believes(&state.lock(), request) => authorize::push(state, request),
        Endpoint::Par => unauthorized_client(),
        Endpoint::EndSession => authorize::end_session(request),
        Endpoint::Token if request.method == "POST" => token::token(state, request),
        Endpoint::Revocation if request.method == "POST" => userinfo::revoke(state, request),
        Endpoint::Introspection if request.method == "POST" => userinfo::introspect(state, request),
        Endpoint::Token | Endpoint::Revocation | Endpoint::Introspection => {
            StatusCode::METHOD_NOT_ALLOWED.into_response()
        }
        Endpoint::Userinfo => userinfo::userinfo(state, request),
        Endpoint::Groups => userinfo::groups(state, request),
    }
}

fn metadata(state: &State) -> Value {
    let memory = state.lock();
    let at = |endpoint: Endpoint| format!("{}{}", state.issuer, endpoint.path());
    let mut document = json!({
        "issuer": state.issuer,
        "authorization_endpoint": at(Endpoint::Authorize),
        "token_endpoint": at(Endpoint::Token),
        "jwks_uri": at(Endpoint::Jwks),
        "userinfo_endpoint": at(Endpoint::Userinfo),
        "end_session_endpoint": at(Endpoint::EndSession),
        "revocation_endpoint": at(Endpoint::Revocation),
        "introspection_endpoint": at(Endpoint::Introspection),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ALGORITHMS,
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"],
        "authorization_response_iss_parameter_supported": true,
        "backchannel_logout_supported": true,
        "backchannel_logout_session_supported": true,
    });
    if let Value::Object(members) = &mut document {
        if memory.script.offer_par {
            members.insert(
                "pushed_authorization_request_endpoint".to_owned(),
                json!(at(Endpoint::Par)),
            );
        }
        patch(members, &memory.script.metadata);
    }
    document
}

pub(crate) fn jwks(state: &State) -> Value {
    let memory = state.lock();
    if let Some(keys) = &memory.script.jwks {
        return keys.clone();
    }
    let mut keys = memory.keys.public();
    keys.extend(memory.upcoming.iter().flat_map(|upcoming| upcoming.public()));
    json!({ "keys": keys })
}

/// An OAuth error with status 400.
pub(crate) fn oauth_error(error: &str) -> Response {
    (
        StatusCode::BAD_REQUEST,
        Json(json!({ "error": error, "error_description": "as scripted" })),
    )
        .into_response()
}

/// `invalid_client` with status 401.
pub(crate) fn unauthorized_client() -> Response {
    (
        StatusCode::UNAUTHORIZED,
        Json(json!({ "error": "invalid_client" })),
    )
        .into_response()
}

pub(crate) fn recorded(method: &Method, query: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Recorded {
    let pairs = |text: &[u8]| {
        form_urlencoded::parse(text)
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect()
    };
    let is_form = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    Recorded {
        method: method.to_string(),
        query: pairs(query.unwrap_or_default().as_bytes()),
        form: if is_form { pairs(body) } else { Vec::new() },
        headers: headers
            .iter()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect(),
        body: String::from_utf8_lossy(body).into_owned(),
    }
}
