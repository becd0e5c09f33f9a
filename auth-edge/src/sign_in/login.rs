//! The login route: begins a transaction and sends the browser to the provider.
//!
//! Invariants: of the query only `returnTo` and the allow-list are read; the cookie is set only when the provider's
//! address is known. Deliberately absent: any state on the server.

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::AuthorizationRequest;

use crate::edge::Edge;
use crate::errors::{Failure, Handler};
use crate::request;
use crate::return_to::ReturnTo;
use crate::sign_in::transaction::{MAX_ORGANIZATION_BYTES, Transaction};

/// Query parameters that may reach the provider; configuration can narrow them.
pub const ALLOWED_PARAMETERS: [&str; 8] = [
    "organization",
    "invitation",
    "login_hint",
    "prompt",
    "ui_locales",
    "acr_values",
    "max_age",
    "screen_hint",
];
/// Longest value passed on, in bytes: more than any of these parameters holds in earnest.
const MAX_VALUE_BYTES: usize = 512;

/// What this login adds to the authorization request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wishes {
    extra: Vec<(String, String)>,
    max_age: Option<u64>,
    organization: Option<String>,
}

/// GET starts a sign-in; HEAD and prefetches start nothing.
pub async fn handle(State(edge): State<Edge>, request: Request) -> Result<Response, Failure> {
    let (head, _) = request.into_parts();
    if head.method == Method::HEAD || request::is_prefetch(&head.headers) {
        return Ok(no_content());
    }
    let query = head.uri.query().unwrap_or_default();
    let return_to = request::first_parameter(query, "returnTo")
        .and_then(|raw| ReturnTo::parse(&edge.settings.base_url, &raw));
    if request::is_script(&head.headers) {
        let login_url = edge.settings.login_url(return_to.as_ref().map(ReturnTo::as_str));
        return Err(Failure::LoginRequired { login_url });
    }
    let now_ms = edge.clock.now_ms();
    let address = edge
        .trusted_proxies
        .client_address(request::peer(&head.extensions), &head.headers);
    edge.login_limit
        .check(address, now_ms)
        .map_err(|too_many| Failure::RateLimited {
            retry_after_secs: too_many.retry_after_secs,
        })?;

    let wishes = wishes(
        query,
        &edge.settings.login_parameters,
        edge.settings.provider.organization.is_some(),
    );
    let mut transaction = Transaction::begin(now_ms).map_err(internal)?;
    transaction.return_to = return_to;
    transaction.max_age = wishes.max_age.or(edge.settings.provider.configured_max_age());
    transaction.organization.clone_from(&wishes.organization);

    let redirect_uri = edge.settings.redirect_uri();
    let authorization = AuthorizationRequest {
        redirect_uri: &redirect_uri,
        state: &transaction.state,
        nonce: &transaction.nonce,
        verifier: &transaction.verifier,
        extra: &wishes.extra,
        max_age: wishes.max_age,
        now: now_ms / 1000,
    };
    let url = edge
        .provider
        .authorization_url(&authorization)
        .await
        .map_err(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "no sign-in can start");
            edge.metrics.login("unavailable");
            Failure::Provider(Handler::Login, error.outage())
        })?;

    let location = HeaderValue::try_from(url.as_str()).map_err(internal)?;
    let mut response = (StatusCode::FOUND, [(header::LOCATION, location)]).into_response();
    for cookie in edge
        .pending
        .add(&head.headers, &transaction, now_ms)
        .map_err(internal)?
    {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
        .headers_mut()
        .insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// The answer to who only looks ahead: nothing, and nothing to keep.
pub(crate) fn no_content() -> Response {
    const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];
    (StatusCode::NO_CONTENT, NO_STORE).into_response()
}

/// Logs a fault of our own and hides it.
pub(super) fn internal(error: impl std::error::Error + 'static) -> Failure {
    tracing::error!(error = &error as &dyn std::error::Error, "fault in the sign-in");
    Failure::Internal
}

/// Reads the allow-listed parameters; the first of repeated ones wins, what does not fit is left out.
fn wishes(query: &str, allowed: &[String], organization_is_configured: bool) -> Wishes {
    let mut wishes = Wishes::default();
    for name in ALLOWED_PARAMETERS
        .into_iter()
        .filter(|name| allowed.iter().any(|allowed| allowed == name))
    {
        let Some(value) = request::first_parameter(query, name) else {
            continue;
        };
        if value.is_empty() || value.len() > MAX_VALUE_BYTES || value.chars().any(char::is_control) {
            continue;
        }
        match name {
            "max_age" => wishes.max_age = value.parse().ok(),
            // Somebody else's organization must not get around the configured one.
            "organization" if organization_is_configured || value.len() > MAX_ORGANIZATION_BYTES => {}
            "organization" => {
                wishes.organization = Some(value.clone());
                wishes.extra.push((name.to_owned(), value));
            }
            _ => wishes.extra.push((name.to_owned(), value)),
        }
    }
    let silent = wishes
        .extra
        .iter()
        .any(|(name, value)| name == "prompt" && value.split(' ').any(|p| p == "none"));
    if silent && wishes.max_age == Some(0) {
        // "Do not ask" and "ask anew" contradict each other (OpenID Connect Core, section 3.1.2.3).
        wishes.max_age = None;
    }
    wishes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<String> {
        ALLOWED_PARAMETERS.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn no_query_parameter_can_set_a_protocol_parameter() {
        let hostile = "client_id=x&redirect_uri=x&state=x&nonce=x&code_challenge=x&response_type=token&scope=x\
                       &response_mode=x&request=x&request_uri=x&audience=x&code_challenge_method=plain&resource=x";
        assert_eq!(wishes(hostile, &all(), false), Wishes::default());
    }

    #[test]
    fn the_first_of_repeated_parameters_wins() {
        let wishes = wishes("login_hint=a&login_hint=b", &all(), false);
        assert_eq!(wishes.extra, [("login_hint".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn configuration_narrows_or_switches_off_the_list() {
        assert_eq!(
            wishes("login_hint=a&prompt=login", &["prompt".to_owned()], false)
                .extra
                .len(),
            1
        );
        assert_eq!(wishes("login_hint=a&prompt=login", &[], false), Wishes::default());
    }

    #[test]
    fn a_configured_organization_cannot_be_got_around() {
        assert_eq!(wishes("organization=org_evil", &all(), true), Wishes::default());
        assert_eq!(
            wishes("organization=org_a", &all(), false)
                .organization
                .as_deref(),
            Some("org_a")
        );
    }

    #[test]
    fn values_that_do_not_fit_are_left_out() {
        let long = format!("login_hint={}", "a".repeat(513));
        for query in [
            &long,
            "login_hint=a%0d%0ab",
            "login_hint=",
            "max_age=-1",
            "max_age=soon",
        ] {
            assert_eq!(wishes(query, &all(), false), Wishes::default(), "{query}");
        }
        assert_eq!(wishes("max_age=0", &all(), false).max_age, Some(0));
        assert_eq!(wishes("max_age=0&prompt=none", &all(), false).max_age, None);
    }
}
