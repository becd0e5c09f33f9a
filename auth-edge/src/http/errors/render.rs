//! Renders failures: JSON for programs, a small page for browsers.

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chassis::audit::RequestId;
use serde_json::json;

use super::HttpError;
use crate::http::no_store;
use crate::http::pages::language::Language;
use crate::http::pages::{NOT_AUTHENTICATED, NextStep, Pages};

/// Renders a failure as a page in the language `page`, or as JSON without one. Other answers stay unchanged.
#[must_use]
pub(crate) fn render(
    bare: Response,
    page: Option<Language>,
    pages: &Pages,
    request_id: RequestId,
) -> Response {
    let (bare, body) = bare.into_parts();
    let Some(failure) = bare.extensions.get::<HttpError>() else {
        return Response::from_parts(bare, body);
    };
    let step = bare.extensions.get::<NextStep>();
    let in_frame = step.is_some_and(NextStep::is_in_frame);
    let mut response = match (failure, page) {
        (HttpError::NotAuthenticated, page) if !in_frame || page.is_none() => unauthorized(),
        (HttpError::NotSent(_), None) => unauthorized(),
        // Only programs receive these failures, so they are JSON regardless of `Accept`.
        (
            HttpError::LogoutToken(_)
            | HttpError::AccessToken { .. }
            | HttpError::LoginRequired(_)
            | HttpError::UnsupportedMediaType { .. },
            _,
        )
        | (_, None) => as_json(failure, step),
        (_, Some(language)) => as_page(failure, step, pages, (language, request_id.as_str())),
    };
    *response.status_mut() = failure.status();
    for (name, value) in &bare.headers {
        if *name != header::CONTENT_LENGTH && *name != header::CONTENT_TYPE {
            response.headers_mut().append(name.clone(), value.clone());
        }
    }
    if let Some((name, value)) = failure.own_headers() {
        response.headers_mut().insert(name, value);
    }
    response.extensions_mut().extend(bare.extensions);
    no_store(response)
}

fn as_page(
    failure: &HttpError,
    step: Option<&NextStep>,
    pages: &Pages,
    (language, request_id): (Language, &str),
) -> Response {
    let next = step.unwrap_or(&NextStep::Home);
    let id = Some(request_id);
    let mut title = failure.title();
    let words = match failure {
        _ if next.is_in_frame() => {
            title = "Sign in first";
            "Sign in to see this content.".to_owned()
        }
        HttpError::MissingClaims { claims, message } => {
            missing_claims(language, failure.words(), claims, message.as_deref())
        }
        HttpError::Denied { reason, message } => {
            denied(language, failure.words(), reason.as_deref(), message.as_deref())
        }
        HttpError::SignIn { acr, .. } | HttpError::MissingClass { acr } if !acr.is_empty() => {
            missing_claims(language, failure.words(), acr, None)
        }
        _ => failure.words().to_owned(),
    };
    let mut response = pages.message(language, (title, &words), next, id);
    if let (NextStep::Retry(url), HttpError::RateLimited { retry_after_secs, .. }) = (next, failure)
        && let Ok(refresh) = HeaderValue::try_from(format!("{retry_after_secs}; url={url}"))
    {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
    response
}

fn as_json(failure: &HttpError, step: Option<&NextStep>) -> Response {
    let mut body = json!({"error": failure.code(), "error_description": failure.words()});
    match (failure, step) {
        (HttpError::SignIn { acr, .. }, step) => {
            if !acr.is_empty() {
                body["acr_values"] = acr.join(" ").into();
            }
            if let Some(NextStep::TryAgain(login_url)) = step {
                body["login_url"] = login_url.as_str().into();
            }
        }
        (HttpError::LoginRequired(login_url), _) => body["login_url"] = login_url.as_str().into(),
        (
            HttpError::Session {
                scopes: Some(scopes), ..
            },
            _,
        ) => body["scopes"] = scopes.as_str().into(),
        (HttpError::MissingClass { acr }, _) => body["acr_values"] = acr.join(" ").into(),
        (HttpError::MissingClaims { claims, message }, _) => {
            body["claims"] = json!(claims);
            if let Some(message) = message {
                body["message"] = (**message).into();
            }
        }
        (HttpError::Denied { reason, message }, _) => {
            if let Some(reason) = reason {
                body["reason"] = reason.as_str().into();
            }
            if let Some(message) = message {
                body["message"] = (**message).into();
            }
        }
        _ => {}
    }
    Json(body).into_response()
}

/// The claims or classes that fail the rule, with the operator's message from the rule.
fn missing_claims(language: Language, words: &str, claims: &[String], message: Option<&str>) -> String {
    let whom = message.unwrap_or_else(|| language.say("Ask the operator of this site for access."));
    let (words, asked) = (language.say(words), language.say("Required"));
    format!("{words} {whom} {asked}: {}", claims.join(", "))
}

/// The decision point's reason, with the operator's message from the rule.
fn denied(language: Language, words: &str, reason: Option<&str>, message: Option<&str>) -> String {
    let whom = message.unwrap_or_else(|| language.say("Ask the operator of this site for access."));
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{} {whom}{reason}", language.say(words))
}

/// Exactly this text in this order, which a JSON map would not keep.
fn unauthorized() -> Response {
    let body = format!(
        r#"{{"error":"not_authenticated","description":"{}"}}"#,
        NOT_AUTHENTICATED
    );
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], body).into_response()
}
