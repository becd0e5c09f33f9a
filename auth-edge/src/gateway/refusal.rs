//! The answers to unauthorized requests: a login or a page for people, an error for programs.
//!
//! Invariants
//! - Only page navigations are redirected, never a form, a script or a prefetch.
//! - No cache stores an answer.

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use session_proto::v1::{ErrorReason, Session};

use super::authorized::RequestHead;
use super::{Gateway, bearer, challenge};
use crate::http::answer_head;
use crate::http::errors::{HttpError, NOT_SENT};
use crate::http::no_store;
use crate::http::pages::NextStep;
use crate::http::pages::language::Language;
use crate::http::request::{self, is_prefetch, is_script, wants_page};
use crate::kept_form;
use crate::providers::ProviderHint;
use crate::providers::sites::Site;
use crate::route_table::requirements::Requirements;
use crate::route_table::unmet_requirement::{UnmetRequirement, WRONG_CONNECTION, WRONG_ORGANIZATION};
use crate::route_table::{Guard, Route};
use crate::values::allowed_parameters::CONNECTION;
use crate::values::reserved::{FRAME_LOGIN_PATH, device_page};
use crate::values::return_to::MAX_BYTES;

/// Answers an unmet requirement: sends people to the login if a sign-in helps, and programs an error.
pub(super) fn refuse(
    gateway: &Gateway,
    route: &Route,
    request: &RequestHead<'_>,
    session: Option<&Session>,
    missing: UnmetRequirement,
) -> Response {
    let site = gateway.sites.of(&request.parts.headers);
    let back = request
        .parts
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let here = site.at(back);
    // The head of a page and its policy has no room for a longer address.
    let fits = here.len() <= MAX_BYTES;
    let connection = same_provider(gateway, &missing, session);
    let sign_in = |back: &str| sign_in(&gateway.login_path, back, &route.requirements, connection);
    let remedy = || {
        within_head(Some(back), |back| match (&missing, back.unwrap_or("/")) {
            (UnmetRequirement::Device, back) => device_page(back),
            (_, back) => sign_in(back),
        })
    };
    if let UnmetRequirement::NotBySignIn(failure) = &missing {
        let retries = failure.is_provider_away() && navigates(request) && fits;
        let login = remedy();
        let refused = refusal(Some(route), session, missing, &login);
        // A revoked grant may cause this answer until the session ends. A sign-in starts a new grant.
        return match retries {
            true => NextStep::RetryOrSignIn(here, login).of(refused),
            false => refused,
        };
    }
    if route.guard == Guard::Page {
        if is_prefetch(&request.parts.headers) {
            return no_store(StatusCode::NO_CONTENT.into_response());
        }
        if navigates(request) {
            if request::is_link_opener(&request.parts.headers) && fits {
                let language = Language::of(&request.parts.headers);
                return gateway.kept_forms.pages.reopen(language, &here);
            }
            return no_store(Redirect::temporary(&remedy()).into_response());
        }
        let is_of_session = !matches!(missing, UnmetRequirement::Device);
        if sends_form(request) && is_of_session {
            let login_url = elsewhere(gateway, route, site);
            let refused = HttpError::NotSent(NOT_SENT).into_response();
            let mut refused = NextStep::SignInElsewhere(login_url).of(refused);
            if route.keep_form {
                let login = sign_in(&kept_form::way_back(request.parts.uri.path()));
                gateway.kept_forms.mark(&mut refused, login, session);
            }
            return refused;
        }
        if request::is_framed(&request.parts.headers) && wants_page(&request.parts.headers) && is_of_session {
            let window = window(site, request, back);
            if gateway.pages.is_embedded() {
                let back = if request.parts.method.is_safe() {
                    back
                } else {
                    &window
                };
                let login = self::sign_in(FRAME_LOGIN_PATH, back, &route.requirements, connection);
                return NextStep::SignInByPopUp(login).of(refusal(Some(route), session, missing, ""));
            }
            let login = sign_in(&window);
            let refused = refusal(Some(route), session, missing, "");
            return NextStep::SignInOutOfFrame(login).of(refused);
        }
    }
    let invites = matches!(missing, UnmetRequirement::Session);
    let login = match missing {
        UnmetRequirement::Token(_) => remedy(),
        _ => String::new(),
    };
    let mut response = refusal(Some(route), session, missing, &login);
    if let Some(rule) = route.bearer.as_ref().filter(|_| invites) {
        let metadata = bearer::metadata_url(site, request.parts.uri.path());
        bearer::invite(&mut response, rule, metadata);
    }
    response
}

/// The session's provider, if the user's next sign-in has to use it again.
pub(super) fn same_provider<'a>(
    gateway: &'a Gateway,
    missing: &UnmetRequirement,
    session: Option<&Session>,
) -> Option<&'a str> {
    let again = match missing {
        UnmetRequirement::StepUp | UnmetRequirement::Token(_) => session,
        UnmetRequirement::NotBySignIn(failure) if failure.is_provider_away() => session,
        UnmetRequirement::Session
        | UnmetRequirement::Organization
        | UnmetRequirement::Connection
        | UnmetRequirement::Device
        | UnmetRequirement::NotBySignIn(_) => None,
    };
    gateway.providers.connection_of(&again?.issuer)
}

/// The answer that names the unmet requirement; `login` is the login URL for this route.
///
/// Without a rule, only a session or a required new sign-in can be missing.
pub(super) fn refusal(
    route: Option<&Route>,
    session: Option<&Session>,
    missing: UnmetRequirement,
    login: &str,
) -> Response {
    let none = Requirements::default();
    let requirements = route.map_or(&none, |route| &route.requirements);
    let offers = |refused: Response| match login {
        "" => refused,
        login => NextStep::SignIn(login.to_owned()).of(refused),
    };
    no_store(match missing {
        UnmetRequirement::Token(reason) => offers(HttpError::session(reason).into_response()),
        UnmetRequirement::Organization => WRONG_ORGANIZATION.into_response(),
        UnmetRequirement::Connection => WRONG_CONNECTION.into_response(),
        UnmetRequirement::Device => HttpError::NotBound.into_response(),
        UnmetRequirement::StepUp => challenged(
            HttpError::NotAuthenticated.into_response(),
            challenge::step_up(&requirements.with_sign_in_demand(session)),
        ),
        UnmetRequirement::Session => HttpError::NotAuthenticated.into_response(),
        UnmetRequirement::NotBySignIn(failure) => {
            if let HttpError::Session {
                reason: ErrorReason::ErrInsufficientScope,
                ..
            } = failure
            {
                let challenge = challenge::scopes(&requirements.token.scopes);
                return no_store(offers(challenged(failure.into_response(), challenge)));
            }
            let has_other_account = matches!(
                failure,
                HttpError::MissingClaims { .. } | HttpError::Denied { .. }
            ) && !login.is_empty();
            let refused = explained(failure, route).into_response();
            match has_other_account {
                // OpenID Connect Core, section 3.1.2.1: the provider asks even a signed-in user.
                true => NextStep::OtherAccount(format!("{login}&prompt=login")).of(refused),
                false => refused,
            }
        }
    })
}

/// An error with the rule's own message.
fn explained(failure: HttpError, route: Option<&Route>) -> HttpError {
    match failure {
        HttpError::MissingClaims { claims, .. } => HttpError::MissingClaims {
            claims,
            message: route.and_then(|route| route.denied_message.clone()),
        },
        other => other,
    }
}

fn challenged(mut response: Response, challenge: Option<HeaderValue>) -> Response {
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Other requests would lose their content, or could not follow a redirect to another origin.
fn navigates(request: &RequestHead<'_>) -> bool {
    is_whole_page(request) && matches!(request.parts.method, Method::GET | Method::HEAD)
}

/// Whether a person submitted a form and waits for a page.
fn sends_form(request: &RequestHead<'_>) -> bool {
    is_whole_page(request) && wants_page(&request.parts.headers)
}

fn is_whole_page(request: &RequestHead<'_>) -> bool {
    request::is_navigation(&request.parts.headers) && !is_script(&request.parts.headers)
}

/// Where a sign-in from a frame returns to: the page with the frame, as far as the browser names it.
fn window(site: &Site, request: &RequestHead<'_>, back: &str) -> String {
    let page = request::text(&request.parts.headers, header::REFERER.as_str())
        .and_then(|referer| site.return_to(referer))
        .map(|page| page.as_str().to_owned());
    page.unwrap_or_else(|| back.to_owned())
}

/// The URL to sign in at in another tab, at the provider of this page.
fn elsewhere(gateway: &Gateway, route: &Route, site: &Site) -> String {
    let named = ProviderHint {
        by_route: route.connection(),
        ..ProviderHint::default()
    };
    let provider = gateway.providers.choose(named, site).ok();
    let connection = provider.and_then(|provider| gateway.providers.connection_of(provider.issuer()));
    site.login_url(None, connection)
}

/// The URL with the return address, or without it if a redirect's head has no room. The login route would drop a
/// return address of that length.
pub(super) fn within_head(back: Option<&str>, address: impl Fn(Option<&str>) -> String) -> String {
    let whole = address(back);
    if whole.len() <= answer_head::room(&HeaderMap::new()) {
        whole
    } else {
        address(None)
    }
}

/// The login URL with the return address and all sign-in requirements of the route, so that one sign-in meets
/// all of them.
pub(super) fn sign_in(
    login: &str,
    back: &str,
    requirements: &Requirements,
    connection: Option<&str>,
) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("returnTo", back);
    if let Some(connection) = connection {
        query.append_pair(CONNECTION, connection);
    }
    if let Some(max_age_secs) = requirements.max_age_secs {
        query.append_pair("max_age", &max_age_secs.to_string());
    }
    if !requirements.acr.is_empty() {
        query.append_pair("acr_values", &requirements.acr.join(" "));
    }
    if let Some(organization) = &requirements.organization {
        query.append_pair("organization", organization);
    }
    format!("{login}?{}", query.finish())
}
