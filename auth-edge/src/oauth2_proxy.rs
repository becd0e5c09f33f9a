//! The addresses of oauth2-proxy, for proxies and applications that were configured for it (`EDGE_ALIASES`).
//!
//! Invariant: an address translates its parameters and calls the edge's own route, with all of its checks. `rd` follows
//! the rules of `returnTo`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use serde_json::json;
use url::form_urlencoded;

use crate::app::App;
use crate::browser::Browser;
use crate::gateway::{self, Gateway};
use crate::http::errors::HttpError;
use crate::http::no_store;
use crate::http::pages::NextStep;
use crate::http::pages::language::Language;
use crate::http::request::{self, first_parameter};
use crate::route_table::allow::{AllowList, DomainPattern, EmailAddress, Members};
use crate::sessions::SessionUse;
use crate::sign_in::{SignIn, login, logout};
use crate::values::reserved::ALIAS_CHECK_PATH;

/// A proxy's own description of the page that needs a sign-in, instead of `rd`.
const X_AUTH_REQUEST_REDIRECT: HeaderName = HeaderName::from_static("x-auth-request-redirect");

/// The routes below `/oauth2`, except the callback, which belongs to its provider.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/oauth2/start", get(start))
        .route("/oauth2/sign_in", get(ask_to_sign_in))
        .route("/oauth2/sign_out", get(sign_out))
        .route(ALIAS_CHECK_PATH, any(check))
        .route("/oauth2/userinfo", get(userinfo))
        .route("/oauth2/{*rest}", any(async || HttpError::NotFound))
}

async fn start(state: State<Arc<SignIn>>, request: Request) -> Response {
    login::handle(state, with_return_to(request)).await
}

async fn sign_out(state: State<Arc<SignIn>>, request: Request) -> Result<Response, HttpError> {
    logout::handle(state, with_return_to(request)).await
}

/// A page with a link to the sign-in. nginx shows it with another status (`error_page 401 =403`), and browsers would
/// not follow a redirect there.
async fn ask_to_sign_in(State(sign_in): State<Arc<SignIn>>, request: Request) -> Response {
    let site = sign_in.sites.of(request.headers());
    let back = return_address(&request).and_then(|raw| site.return_to(&raw));
    let login = site.login_url(back.as_ref().map(|back| back.as_str()), None);
    if !request::wants_page(request.headers()) {
        return HttpError::NotAuthenticated.into_response();
    }
    let words = ("Sign in first", "Sign in to see this content.");
    let language = Language::of(request.headers());
    no_store(
        sign_in
            .pages
            .message(language, words, &NextStep::SignIn(login), None),
    )
}

/// A check. The query may name the users that pass: each of its parameters has to match.
async fn check(
    State(gateway): State<Arc<Gateway>>,
    State(browser): State<Arc<Browser>>,
    request: Request,
) -> Result<Response, HttpError> {
    let lists = lists(request.uri().query().unwrap_or_default())?;
    let headers = request.headers().clone();
    let answer = gateway::check::handle(State(gateway), request).await;
    if lists.is_empty() || !answer.status().is_success() {
        return Ok(answer);
    }
    let current = browser.sessions.current(&headers, SessionUse::LookOnly).await;
    let current = current.map_err(|error| HttpError::session_service_down(&error, "check not possible"))?;
    let session = current.ok_or(HttpError::NotAuthenticated)?.session;
    let claims = session.claims();
    let is_unverified = claims.get("email_verified") == Some(&false.into());
    match lists.iter().find_map(|list| list.unmet_claim(claims)) {
        Some(claim) => Err(missing(claim)),
        None if is_unverified => Err(missing("email_verified".to_owned())),
        None => Ok(answer),
    }
}

fn missing(claim: String) -> HttpError {
    HttpError::MissingClaims {
        claims: vec![claim],
        message: None,
    }
}

/// The users that the query of a check names.
///
/// # Errors
/// A parameter that cannot be read: it would admit too many.
fn lists(query: &str) -> Result<Vec<AllowList>, HttpError> {
    const WRONG: HttpError = HttpError::BadRequest("The query names users in a form that is not known.");
    let members = |name| {
        let texts = first_parameter(query, name).unwrap_or_default();
        let members = texts.split(',').map(str::trim).filter(|text| !text.is_empty());
        members.map(str::to_owned).collect::<Vec<_>>()
    };
    let domain = |text: &String| {
        let below = text.strip_prefix('.').map(|domain| format!("*.{domain}"));
        DomainPattern::parse(below.as_deref().unwrap_or(text))
    };
    let all = |emails: &[String], domains: &[String], groups: Vec<String>| {
        let emails = emails
            .iter()
            .map(|text| EmailAddress::parse(text))
            .collect::<Option<_>>();
        Some(Members {
            emails: emails?,
            domains: domains.iter().map(domain).collect::<Option<_>>()?,
            groups,
            networks: Vec::new(),
        })
    };
    let (emails, domains, groups) = (
        members("allowed_emails"),
        members("allowed_email_domains"),
        members("allowed_groups"),
    );
    let kinds = [
        all(&emails, &[], Vec::new()),
        all(&[], &domains, Vec::new()),
        all(&[], &[], groups),
    ];
    let kinds = kinds.into_iter().collect::<Option<Vec<Members>>>().ok_or(WRONG)?;
    let kinds = kinds.into_iter().filter(|members| !members.is_empty());
    Ok(kinds.map(AllowList::of).collect())
}

/// The user as oauth2-proxy describes it.
async fn userinfo(State(browser): State<Arc<Browser>>, request: Request) -> Result<Response, HttpError> {
    let current = browser
        .sessions
        .current(request.headers(), SessionUse::LookOnly)
        .await;
    let current =
        current.map_err(|error| HttpError::session_service_down(&error, "userinfo not available"))?;
    let session = current.ok_or(HttpError::NotAuthenticated)?.session;
    let claim = |name: &str| session.claims().get(name);
    let user = json!({
        "user": session.subject,
        "email": claim("email"),
        "groups": claim("groups"),
        "preferredUsername": claim("preferred_username"),
    });
    Ok(no_store(Json(user).into_response()))
}

/// The address to return to: of `rd`, of `returnTo` (the edge's own pages repeat it), or of the proxy's header.
fn return_address(request: &Request) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let by_header = || request::text(request.headers(), X_AUTH_REQUEST_REDIRECT.as_str()).map(str::to_owned);
    first_parameter(query, "rd")
        .or_else(|| first_parameter(query, "returnTo"))
        .or_else(by_header)
}

/// The request with its return address under the name that the edge's own routes read.
fn with_return_to(mut request: Request) -> Request {
    let Some(address) = return_address(&request) else {
        return request;
    };
    let given = request.uri().query().unwrap_or_default();
    let others =
        form_urlencoded::parse(given.as_bytes()).filter(|(name, _)| name != "rd" && name != "returnTo");
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("returnTo", &address).extend_pairs(others);
    let target = format!("{}?{}", request.uri().path(), query.finish());
    if let Ok(target) = Uri::try_from(target) {
        *request.uri_mut() = target;
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn target(uri: &str, header: Option<&str>) -> String {
        let mut request = Request::builder().uri(uri);
        if let Some(header) = header {
            request = request.header(X_AUTH_REQUEST_REDIRECT, header);
        }
        with_return_to(request.body(Body::empty()).unwrap())
            .uri()
            .to_string()
    }

    #[test]
    fn rd_becomes_return_to_and_nothing_is_added_to_it() {
        for (uri, header, expected) in [
            (
                "/oauth2/start?rd=%2Fa%3Fb%3Dc",
                None,
                "/oauth2/start?returnTo=%2Fa%3Fb%3Dc",
            ),
            (
                "/oauth2/start?rd=%2Fa&rd=%2Fb&login_hint=x",
                Some("/c"),
                "/oauth2/start?returnTo=%2Fa&login_hint=x",
            ),
            ("/oauth2/start?returnTo=%2Fa", None, "/oauth2/start?returnTo=%2Fa"),
            (
                "/oauth2/start",
                Some("/c?d=e"),
                "/oauth2/start?returnTo=%2Fc%3Fd%3De",
            ),
            (
                "/oauth2/start?rd=%0d%0aSet-Cookie%3Aa",
                None,
                "/oauth2/start?returnTo=%0D%0ASet-Cookie%3Aa",
            ),
            ("/oauth2/start?prompt=login", None, "/oauth2/start?prompt=login"),
        ] {
            assert_eq!(target(uri, header), expected, "{uri}");
        }
    }
}
