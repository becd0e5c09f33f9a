//! Failures as bodies: JSON for programs, a small page for browsers.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chassis::audit::RequestId;
use serde_json::json;

use super::HttpError;
use super::next_step::{NextStep, put_refresh};
use crate::http::pages::language::Language;
use crate::http::pages::{self, Pages};

/// Whether the client would rather have a page than JSON: it names `text/html`.
#[must_use]
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok());
    accepts.flat_map(|line| line.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        !refused
            && (kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml"))
    })
}

/// Turns a failure into a body, a page in this language where the client would rather have one; other answers stay as they
/// are.
#[must_use]
pub(crate) fn render(
    response: Response,
    page: Option<Language>,
    pages: &Pages,
    request_id: RequestId,
) -> Response {
    match response.extensions().get::<HttpError>().cloned() {
        Some(failure) => rendered(
            &failure,
            page.map(|language| (pages, language)),
            request_id,
            response,
        ),
        None => response,
    }
}

fn rendered(
    failure: &HttpError,
    page: Option<(&Pages, Language)>,
    request_id: RequestId,
    bare: Response,
) -> Response {
    let (code, words) = (failure.code(), failure.words());
    let step = bare.extensions().get::<NextStep>().cloned();
    let in_frame = matches!(step, Some(NextStep::SignInOutOfFrame(_))) && page.is_some();
    let mut response = match failure {
        HttpError::NotAuthenticated if !in_frame => unauthorized(),
        HttpError::NotSent { .. } if page.is_none() => unauthorized(),
        HttpError::LoginRequired { login_url } => {
            Json(json!({"error": code, "error_description": words, "login_url": login_url})).into_response()
        }
        // Machines talk JSON whatever they accept: the provider's, the proxies', and who comes with a token of its own.
        HttpError::LogoutToken(_)
        | HttpError::AccessToken { .. }
        | HttpError::UnsupportedMediaType { .. } => {
            Json(json!({"error": code, "error_description": words})).into_response()
        }
        _ => match page {
            Some((pages, language)) => {
                let id = Some(request_id.as_str());
                let offered = step.as_ref().map(NextStep::on_page);
                let next = offered.unwrap_or_else(|| next_step(failure));
                let what = (failure.title(), words);
                let mut shown = match failure {
                    _ if in_frame => pages.sign_in_out_of_frame(language, next, id),
                    HttpError::NotSent { kept: Some(kept), .. } => {
                        pages.keep_form(language, what, next, id, kept)
                    }
                    HttpError::MissingClaims { claims, message, .. } => {
                        let words = missing_claims(language, words, claims, message.as_deref());
                        pages.message(language, (failure.title(), &words), next, id)
                    }
                    HttpError::MissingClass { acr, .. } => {
                        let words = missing_claims(language, words, acr, None);
                        pages.message(language, (failure.title(), &words), next, id)
                    }
                    _ => pages.message(language, what, next, id),
                };
                put_refresh(&mut shown, step.as_ref(), failure);
                shown
            }
            None => as_json(failure),
        },
    };
    *response.status_mut() = failure.status();
    let (bare, _) = bare.into_parts();
    for (name, value) in &bare.headers {
        if *name != header::CONTENT_LENGTH && *name != header::CONTENT_TYPE {
            response.headers_mut().append(name.clone(), value.clone());
        }
    }
    response.extensions_mut().extend(bare.extensions);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some((name, value)) = failure.own_headers() {
        response.headers_mut().insert(name, value);
    }
    response
}

/// What a page offers after this failure.
fn next_step(failure: &HttpError) -> pages::NextStep<'_> {
    match failure {
        HttpError::Callback { try_again, .. }
        | HttpError::MissingClass {
            try_again: Some(try_again),
            ..
        }
        | HttpError::CallbackUnavailable { try_again } => pages::NextStep::TryAgain(try_again),
        HttpError::MissingClaims {
            other_account: Some(login_url),
            ..
        } => pages::NextStep::OtherAccount(login_url),
        HttpError::NotBound {
            login_url: Some(login_url),
        } => pages::NextStep::SignInAgainOrOut(login_url),
        HttpError::NotSent { login_url, .. } => pages::NextStep::SignInElsewhere(login_url),
        _ => pages::NextStep::Home,
    }
}

fn as_json(failure: &HttpError) -> Response {
    let (code, words) = (failure.code(), failure.words());
    match failure {
        HttpError::Callback { try_again, .. } | HttpError::CallbackUnavailable { try_again } => {
            Json(json!({"error": code, "error_description": words, "login_url": try_again})).into_response()
        }
        HttpError::Session {
            scopes: Some(scopes), ..
        } => Json(json!({"error": code, "error_description": words, "scopes": scopes})).into_response(),
        HttpError::MissingClass { acr, try_again } => {
            let mut body = json!({"error": code, "error_description": words, "acr_values": acr.join(" ")});
            if let Some(try_again) = try_again {
                body["login_url"] = try_again.as_str().into();
            }
            Json(body).into_response()
        }
        HttpError::MissingClaims { claims, message, .. } => {
            let mut body = json!({"error": code, "error_description": words, "claims": claims});
            if let Some(message) = message {
                body["message"] = (**message).into();
            }
            Json(body).into_response()
        }
        _ => Json(json!({"error": code, "error_description": words})).into_response(),
    }
}

/// Which claims or classes are not as required, and what whoever wrote the rule says of it.
fn missing_claims(language: Language, words: &str, claims: &[String], message: Option<&str>) -> String {
    let whom = message.unwrap_or_else(|| language.say("Ask whoever runs this site to be let in."));
    let (words, asked) = (language.say(words), language.say("What is asked for"));
    format!("{words} {whom} {asked}: {}", claims.join(", "))
}

/// Word for word, and in this order, which a JSON map would not keep.
fn unauthorized() -> Response {
    let body = format!(
        r#"{{"error":"not_authenticated","description":"{}"}}"#,
        pages::NOT_AUTHENTICATED
    );
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn a_browser_gets_a_page_and_a_program_gets_json() {
        assert!(wants_page(&accepts(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        )));
        for program in ["*/*", "application/json", "text/html;q=0, */*", ""] {
            assert!(!wants_page(&accepts(program)), "{program}");
        }
        assert!(!wants_page(&HeaderMap::new()));
    }
}
