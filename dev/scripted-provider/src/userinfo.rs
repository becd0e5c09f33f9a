//! Userinfo, introspection and revocation.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::script::{Claims, patch};
use crate::server::unauthorized_client;
use crate::state::State;
use crate::token::believes;
use crate::{CLIENT_ID, Recorded};

/// Claims of the person of an access token.
pub(crate) fn userinfo(state: &State, request: &Recorded) -> Response {
    let memory = state.lock();
    let token = request
        .header("authorization")
        .and_then(|value| value.strip_prefix(if memory.script.dpop { "DPoP " } else { "Bearer " }));
    let Some(login) = token.and_then(|token| memory.access_tokens.get(token)) else {
        return (
            StatusCode::UNAUTHORIZED,
            [("www-authenticate", "Bearer error=\"invalid_token\"")],
        )
            .into_response();
    };
    let mut claims = login.user.clone();
    claims.insert("sub".to_owned(), json!(login.sub));
    patch(&mut claims, &memory.script.userinfo);
    if memory.script.userinfo_jwt {
        for (name, value) in [("iss", json!(state.issuer)), ("aud", json!(CLIENT_ID))] {
            claims.entry(name).or_insert(value);
        }
        let token = memory.keys.sign(&memory.header("JWT"), &Value::Object(claims));
        return ([("content-type", "application/jwt")], token).into_response();
    }
    Json(Value::Object(claims)).into_response()
}

/// The introspection of an access token (RFC 7662), and of a refresh token, which is active too.
pub(crate) fn introspect(state: &State, request: &Recorded) -> Response {
    let memory = state.lock();
    if !believes(&memory, request) {
        return unauthorized_client();
    }
    let token = request.param("token").unwrap_or_default();
    let mut said = Claims::new();
    let known = memory
        .access_tokens
        .get(token)
        .or_else(|| memory.refresh_tokens.get(token));
    said.insert("active".to_owned(), json!(known.is_some()));
    if let Some(login) = known {
        let (scope, sub, now) = (&login.scope, &login.sub, memory.now());
        let good = json!({
            "iss": state.issuer, "client_id": "machine", "scope": scope, "sub": sub, "exp": now + 3600, "iat": now,
            "token_type": "Bearer",
        });
        said.extend(good.as_object().cloned().unwrap_or_default());
        patch(&mut said, &memory.script.introspection);
    }
    if memory.script.introspection_jwt {
        let claims = json!({
            "iss": state.issuer, "aud": CLIENT_ID, "iat": memory.now(), "token_introspection": said,
        });
        let token = memory
            .keys
            .sign(&memory.header("token-introspection+jwt"), &claims);
        return ([("content-type", "application/token-introspection+jwt")], token).into_response();
    }
    Json(Value::Object(said)).into_response()
}

/// One page of the groups of the access token's person, with a link to the next page.
pub(crate) fn groups(state: &State, request: &Recorded) -> Response {
    const ON_A_PAGE: usize = 100;
    let memory = state.lock();
    let token = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    if !token.is_some_and(|token| memory.access_tokens.contains_key(token)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let skip: usize = request
        .param("$skiptoken")
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let page = memory.script.groups.iter().skip(skip).take(ON_A_PAGE);
    let mut body = json!({ "value": page.map(|id| json!({ "id": id })).collect::<Vec<_>>() });
    if skip + ON_A_PAGE < memory.script.groups.len() {
        let path = crate::Endpoint::Groups.path();
        body["@odata.nextLink"] = json!(format!("{}{path}?$skiptoken={}", state.issuer, skip + ON_A_PAGE));
    }
    Json(body).into_response()
}

/// Forgets a token.
pub(crate) fn revoke(state: &State, request: &Recorded) -> Response {
    let mut memory = state.lock();
    if !believes(&memory, request) {
        return unauthorized_client();
    }
    let token = request.param("token").unwrap_or_default();
    memory.refresh_tokens.remove(token);
    memory.access_tokens.remove(token);
    StatusCode::OK.into_response()
}
