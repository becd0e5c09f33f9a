//! The authorization, pushed-request and end-session endpoints.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use serde_json::json;
use url::Url;

use crate::server::oauth_error;
use crate::state::{Login, State};
use crate::{CLIENT_ID, Recorded};

/// Sends the browser back at once.
pub(crate) fn authorize(state: &State, request: &Recorded) -> Response {
    let mut memory = state.lock();
    let params = match request.param("request_uri") {
        Some(uri) => match memory.pushed.remove(uri) {
            Some(params) => Recorded {
                form: Vec::new(),
                query: params,
                ..request.clone()
            },
            None => return (StatusCode::BAD_REQUEST, "request_uri is unknown or was used").into_response(),
        },
        None => request.clone(),
    };
    let get = |name: &str| params.param(name).map(str::to_owned);
    let Some(mut back) = get("redirect_uri").and_then(|uri| Url::parse(&uri).ok()) else {
        return (StatusCode::BAD_REQUEST, "redirect_uri is missing").into_response();
    };
    if get("client_id").as_deref() != Some(CLIENT_ID) || get("response_type").as_deref() != Some("code") {
        return (StatusCode::BAD_REQUEST, "client_id or response_type is wrong").into_response();
    }
    let mut answer: Vec<(&str, String)> = Vec::new();
    if let Some(error) = memory.script.authorize_error.clone() {
        answer.push(("error", error));
        answer.push(("error_description", "<script>alert(1)</script> no".to_owned()));
    } else {
        let code = memory.fresh("code");
        let fresh_sid = memory.fresh("sid");
        let login = Login {
            redirect_uri: back.to_string(),
            nonce: get("nonce"),
            challenge: get("code_challenge")
                .filter(|_| get("code_challenge_method").as_deref() == Some("S256")),
            scope: get("scope").unwrap_or_default(),
            sub: memory.script.sub.clone(),
            sid: memory.script.sid.clone().unwrap_or(fresh_sid),
            user: memory.script.user.clone(),
            auth_time: memory.now(),
        };
        memory.codes.insert(
            code.clone(),
            Login {
                redirect_uri: get("redirect_uri").unwrap_or_default(),
                ..login
            },
        );
        answer.push(("code", code));
    }
    if let Some(value) = get("state") {
        answer.push(("state", value));
    }
    if !memory.script.no_callback_iss {
        answer.push((
            "iss",
            memory
                .script
                .callback_iss
                .clone()
                .unwrap_or_else(|| state.issuer.clone()),
        ));
    }
    if get("response_mode").as_deref() == Some("form_post") {
        answer.extend(memory.script.posted.iter().cloned());
        return form(&back, &answer);
    }
    back.query_pairs_mut().extend_pairs(answer);
    (StatusCode::FOUND, [("location", back.to_string())]).into_response()
}

fn form(back: &Url, answer: &[(&str, String)]) -> Response {
    let escape = |text: &str| {
        text.replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('<', "&lt;")
    };
    let fields: String = answer
        .iter()
        .map(|(name, value)| {
            format!(
                "<input type=\"hidden\" name=\"{name}\" value=\"{}\">",
                escape(value)
            )
        })
        .collect();
    Html(format!(
        "<form method=\"post\" action=\"{}\">{fields}</form><script>document.forms[0].submit()</script>",
        escape(back.as_str())
    ))
    .into_response()
}

/// Takes a pushed authorization request.
pub(crate) fn push(state: &State, request: &Recorded) -> Response {
    if request.param("request_uri").is_some() {
        return oauth_error("invalid_request");
    }
    let mut memory = state.lock();
    let uri = format!("urn:ietf:params:oauth:request_uri:{}", memory.fresh("pushed"));
    memory.pushed.insert(uri.clone(), request.form.clone());
    (
        StatusCode::CREATED,
        axum::Json(json!({ "request_uri": uri, "expires_in": 60 })),
    )
        .into_response()
}

/// Ends the provider's session and sends the browser back.
pub(crate) fn end_session(request: &Recorded) -> Response {
    let Some(mut back) = request
        .param("post_logout_redirect_uri")
        .and_then(|uri| Url::parse(uri).ok())
    else {
        return Html("signed out").into_response();
    };
    if let Some(value) = request.param("state") {
        back.query_pairs_mut().append_pair("state", value);
    }
    Redirect::to(back.as_str()).into_response()
}
