//! The answers to forward-auth checks of requests that the edge rejects.
//!
//! Invariant: the edge redirects to the login only if a user navigates to a page.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use session_proto::v1::Session;

use crate::gateway::{Gateway, bearer, refusal};
use crate::http::request::{self, first_parameter, is_prefetch, is_script, wants_page};
use crate::route_table::unmet_requirement::UnmetRequirement;
use crate::route_table::{Guard, Route};
use crate::values::forwarded::OriginalRequest;
use crate::values::reserved::device_page;

/// Answers a page navigation with 302 to the login or device page if the rule or the proxy asks for redirects.
/// Any other request, or a requirement that no sign-in meets, gets an error such as 401 or 403.
pub(super) fn refuse(
    gateway: &Gateway,
    (asking, original): (&Parts, &OriginalRequest),
    route: Option<&Route>,
    session: Option<&Session>,
    missing: UnmetRequirement,
) -> Response {
    let headers = &asking.headers;
    let site = gateway.sites.of(headers);
    let connection = refusal::same_provider(gateway, &missing, session);
    let back = original.url.as_deref();
    let login = refusal::within_head(back, |back| match (route, back) {
        (Some(_), Some(back)) if matches!(missing, UnmetRequirement::Device) => site.at(&device_page(back)),
        (Some(route), Some(back)) => {
            let login = site.at(&gateway.login_path);
            refusal::sign_in(&login, back, &route.requirements, connection)
        }
        _ => site.login_url(back, connection),
    });
    let by_sign_in = !matches!(missing, UnmetRequirement::NotBySignIn(_));
    if by_sign_in
        && sends_visitors(asking, route)
        && is_visit(original.method.as_ref(), headers)
        && let Ok(login) = HeaderValue::try_from(&login)
    {
        return (StatusCode::FOUND, [(header::LOCATION, login)]).into_response();
    }
    let invites = matches!(missing, UnmetRequirement::Session);
    let login = if back.is_some() { &*login } else { "" };
    let mut response = refusal::refusal(route, session, missing, login);
    if let Some(rule) = route.and_then(|route| route.bearer.as_ref()).filter(|_| invites) {
        bearer::invite(&mut response, rule, None);
    }
    response
}

/// Whether the rule (`redirect = true`) or the proxy (`?redirect=1`) asks the edge to redirect visitors. A rule
/// whose guard is not `page` prevents redirects.
fn sends_visitors(asking: &Parts, route: Option<&Route>) -> bool {
    let by_proxy = || {
        let query = asking.uri.query().unwrap_or_default();
        first_parameter(query, "redirect").is_some_and(|value| value == "1")
    };
    match route {
        Some(route) => route.guard == Guard::Page && (route.redirect || by_proxy()),
        None => by_proxy(),
    }
}

/// Whether the request is a page navigation: by Fetch Metadata, or by `Accept` if the browser sends none.
/// A form post does not count: a redirect would lose its content.
fn is_visit(method: Option<&Method>, headers: &HeaderMap) -> bool {
    let is_known = headers.contains_key("sec-fetch-mode") || wants_page(headers);
    let reads = matches!(method, None | Some(&Method::GET | &Method::HEAD));
    is_known && reads && request::is_navigation(headers) && !is_script(headers) && !is_prefetch(headers)
}
