//! Failures as bodies: JSON for programs, a small page for browsers.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Failure;
use crate::http::observe::RequestId;
use crate::http::pages;

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

/// Turns a failure into a body, a page where the client would rather have one; other answers stay as they are.
#[must_use]
pub(crate) fn render(response: Response, page: bool, request_id: &RequestId) -> Response {
    match response.extensions().get::<Failure>().cloned() {
        Some(failure) => rendered(&failure, page, request_id, response),
        None => response,
    }
}

fn rendered(failure: &Failure, page: bool, request_id: &RequestId, bare: Response) -> Response {
    let told = failure.presentation();
    let mut response = match failure {
        Failure::NotAuthenticated => unauthorized(),
        Failure::NotSent { .. } if !page => unauthorized(),
        Failure::LoginRequired { login_url } => {
            axum::Json(json!({"error": told.code, "error_description": told.words, "login_url": login_url}))
                .into_response()
        }
        // The provider's and the proxies' machines talk JSON whatever they accept.
        Failure::LogoutToken(_) => {
            axum::Json(json!({"error": told.code, "error_description": told.words})).into_response()
        }
        _ if page => {
            let action = match failure {
                Failure::Callback { try_again, .. } | Failure::CallbackUnavailable { try_again } => {
                    pages::Action::TryAgain(try_again)
                }
                Failure::NotSent { login_url } => pages::Action::SignInElsewhere(login_url),
                _ => pages::Action::Home,
            };
            pages::message(told.title, told.words, action, Some(request_id.as_str()))
        }
        Failure::Callback { try_again, .. } | Failure::CallbackUnavailable { try_again } => {
            axum::Json(json!({"error": told.code, "error_description": told.words, "login_url": try_again}))
                .into_response()
        }
        Failure::Session {
            scopes: Some(scopes), ..
        } => axum::Json(json!({"error": told.code, "error_description": told.words, "scopes": scopes}))
            .into_response(),
        _ => axum::Json(json!({"error": told.code, "error_description": told.words})).into_response(),
    };
    *response.status_mut() = told.status;
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
