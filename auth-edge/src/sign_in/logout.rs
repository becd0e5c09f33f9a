//! The logout route: ends the session here first, then at the provider.
//!
//! Invariants
//! - A sign-out clears the browser's cookie, with the attributes it was set with, even if the provider or the
//!   session service fails.
//! - Another site can request a sign-out but never perform one.
//! - The head of the answer fits a proxy's buffer; otherwise the browser would not receive the cleared
//!   cookies. So the edge omits a long ID token.
//! - If the user stays signed in at the provider, the next sign-in of this browser has the provider ask.
//!
//! Deliberately absent: waiting for the provider.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chassis::audit::{AuditRecord, Event, Outcome};
use oidc::EndSessionRequest;
use serde_json::Value;
use session_proto::client::SessionError;
use session_proto::v1::{Device, EndSessionResponse};

use super::ProviderLogout;
use crate::http::answer_head;
use crate::http::device::record_from;
use crate::http::errors::HttpError;
use crate::http::pages::language::Language;
use crate::http::protect::csrf::{self, FORM_FIELD};
use crate::http::request;
use crate::http::{no_content, no_store};
use crate::providers::sites;
use crate::sessions::SessionUse;
use crate::sessions::cookies::SessionId;
use crate::sessions::device_binding::DeviceBindings;
use crate::sign_in::SignIn;
use crate::sign_in::background::until_done;
use crate::sign_in::pending::reminders::Reminder;
use crate::sign_in::user::of_id_token;
use crate::values::return_to::ReturnTo;

/// Largest form, in bytes: a token and a `returnTo`.
const MAX_FORM_BYTES: usize = 16 * 1024;

/// Longest ID token sent to the provider as a hint, in bytes. The head still fits a proxy's buffer of 4 KiB, and the
/// address fits the 8 KiB that providers accept.
const MAX_ID_TOKEN_HINT_BYTES: usize = 2_048;

/// Longest hint sent instead of it, in bytes: session IDs and Entra's opaque hints are shorter.
const MAX_LOGOUT_HINT_BYTES: usize = 512;

/// Fragment of the landing page if the user is still signed in at the provider. The web app shows a notice.
const HERE_ONLY: &str = "#signed-out-here-only";

/// Signs out on a navigating GET that no other site caused, and on a POST with the CSRF proof.
pub(crate) async fn handle(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, body) = request.into_parts();
    let headers = &head.headers;
    let is_post = head.method == Method::POST;
    if !is_post && (head.method == Method::HEAD || request::is_prefetch(headers)) {
        return Ok(no_content());
    }
    let form = if is_post && super::is_form(headers) {
        super::form(body, MAX_FORM_BYTES).await?
    } else {
        String::new()
    };
    let site = sign_in.sites.of(headers);
    let session = sign_in.cookies.read(headers);
    let requested = request::first_parameter(&form, "returnTo")
        .or_else(|| request::first_parameter(head.uri.query().unwrap_or_default(), "returnTo"));
    let return_to = return_to(&sign_in, site, requested);
    let is_ours = if is_post {
        let token = request::first_parameter(&form, FORM_FIELD);
        let id = session.as_ref().map(SessionId::expose);
        csrf::check_form(&sign_in.keys, headers, &site.base_url, id, token.as_deref())?;
        true
    } else {
        let is_ours = !request::is_cross_site(headers);
        if !request::is_navigation(headers) {
            return Err(HttpError::CrossSite);
        }
        if let Some(session) = session.as_ref().filter(|_| !is_ours) {
            let token = csrf::issue(&sign_in.keys, session.expose());
            let providers = sign_in.providers.origins();
            let return_to = return_to.as_ref().map(ReturnTo::as_str);
            return Ok(sign_in
                .pages
                .confirm_logout(Language::of(headers), &token, return_to, &providers));
        }
        if !is_ours && sign_in.strict_cookie {
            // The browser may have left out a session cookie. Clearing it would sign the user out unasked.
            return Ok(Redirect::to(&landing(&sign_in, site, return_to.as_ref())).into_response());
        }
        is_ours
    };
    // Also clear pending sign-ins, which must not finish after this, and the owner of kept forms.
    let mut forgotten = Vec::new();
    if is_ours {
        let mode = sign_in.providers.pending_mode();
        forgotten = sign_in.pending.clear_all(headers, mode);
        forgotten.extend(sign_in.people.forget(headers));
    }
    Ok(sign_out(&sign_in, (&head, site), session, forgotten, return_to).await)
}

fn return_to(sign_in: &SignIn, site: &sites::Site, requested: Option<String>) -> Option<ReturnTo> {
    ReturnTo::parse_for_logout(
        &site.base_url,
        &sign_in.settings.logout_return_to_allowed,
        &requested?,
    )
    .filter(|to| !site.owns(to))
}

/// The page where the visitor lands.
fn landing(sign_in: &SignIn, site: &sites::Site, return_to: Option<&ReturnTo>) -> String {
    return_to.map_or_else(
        || site.here(sign_in.sites.main(), &sign_in.settings.post_logout_redirect),
        |to| to.as_str().to_owned(),
    )
}

/// Writes the audit record of a sign-out. The session service's record of the same request names the user.
fn record(device: &Device, provider: Option<&str>, error: Option<&SessionError>) {
    let outcome = if error.is_none() {
        Outcome::Success
    } else {
        Outcome::Failure
    };
    AuditRecord {
        reason: error.map(|error| error.reason.as_str_name()),
        provider,
        error: error.map(|error| error as &dyn std::error::Error),
        ..record_from(device, Event::SignOut, outcome)
    }
    .write();
}

/// Ends the session of the cookie, if there is one, and clears the cookies in `forgotten`.
async fn sign_out(
    sign_in: &Arc<SignIn>,
    (head, site): (&Parts, &sites::Site),
    session: Option<SessionId>,
    forgotten: Vec<HeaderValue>,
    return_to: Option<ReturnTo>,
) -> Response {
    let status = match head.method {
        Method::POST => StatusCode::SEE_OTHER,
        _ => StatusCode::FOUND,
    };
    let device = sign_in.device(head);
    let landing = landing(sign_in, site, return_to.as_ref());
    let mut response = cleared(sign_in, status.into_response(), forgotten);
    let mut target = landing.clone();
    if let Some(session) = session {
        // Only the browser that the session belongs to may receive its data.
        let current = sign_in
            .sessions
            .current(&head.headers, SessionUse::LookOnly)
            .await;
        let is_known = matches!(current, Ok(Some(_)));
        match sign_in.sessions.end(&session).await {
            Ok(mut ended) if ended.ended => {
                if !is_known {
                    ended.id_token_hint.clear();
                }
                let provider = sign_in.providers.of_session(&ended.issuer);
                record(&device, provider.map(|provider| provider.id.as_str()), None);
                let landings = [landing, self::landing(sign_in, site, None)];
                let room = answer_head::room(response.headers());
                match (provider_logout(sign_in, &ended, &landings, room).await, provider) {
                    (Some(url), _) => target = url,
                    (None, Some(provider)) => {
                        remember_left(sign_in, &mut response, &provider.id);
                        if return_to.is_none() {
                            target.push_str(HERE_ONLY);
                        }
                    }
                    (None, None) => {}
                }
            }
            Ok(_no_session) => {}
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "session not ended yet");
                record(&device, None, Some(&error));
                for provider in &sign_in.providers.all {
                    remember_left(sign_in, &mut response, &provider.id);
                }
                end_later(sign_in.clone(), session);
                response.extensions_mut().insert(HttpError::SignedOutHereOnly);
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return response;
            }
        }
    }
    if let Ok(location) = HeaderValue::try_from(target) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Stores a reminder that the user may still be signed in at this provider, so that it asks next time.
fn remember_left(sign_in: &SignIn, response: &mut Response, provider: &str) {
    let reminder = sign_in.pending.remember(Reminder::Left(provider));
    answer_head::append_what_fits(response.headers_mut(), &header::SET_COOKIE, reminder);
}

/// Clears the browser's session cookie, its cached pages, and the cookies in `forgotten`.
fn cleared(sign_in: &SignIn, mut response: Response, forgotten: Vec<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    let proof = sign_in.bindings.as_ref().and_then(DeviceBindings::clear);
    for cookie in sign_in.cookies.clear().into_iter().chain(proof) {
        headers.append(header::SET_COOKIE, cookie);
    }
    headers.insert("clear-site-data", HeaderValue::from_static("\"cache\""));
    answer_head::append_what_fits(headers, &header::SET_COOKIE, forgotten);
    no_store(response)
}

/// The address where the provider ends its session, of at most `room` bytes. `None` if it has none, is down,
/// or must not be asked. The browser returns to the first landing whose address fits.
async fn provider_logout(
    sign_in: &SignIn,
    ended: &EndSessionResponse,
    [landing, start_page]: &[String; 2],
    room: usize,
) -> Option<String> {
    let Some(provider) = sign_in.providers.of_session(&ended.issuer) else {
        tracing::warn!(
            issuer = ended.issuer,
            "signed out here only: the provider is not configured"
        );
        return None;
    };
    let room = room.saturating_sub("location: \r\n".len());
    let id_token = Some(ended.id_token_hint.as_str()).filter(|hint| !hint.is_empty());
    let short = id_token.filter(|token| token.len() <= MAX_ID_TOKEN_HINT_BYTES);
    for (id_token_hint, landing) in [(short, landing), (None, landing), (None, start_page)] {
        let url = match &sign_in.settings.provider_logout {
            ProviderLogout::Off => return None,
            ProviderLogout::Template(template) => {
                let relying_party = &provider.relying_party;
                relying_party.templated_logout_url(template, landing).await
            }
            ProviderLogout::Oidc => {
                let logout_hint = id_token.filter(|_| id_token_hint.is_none()).and_then(logout_hint);
                let state = super::request_id();
                let request = EndSessionRequest {
                    id_token_hint,
                    logout_hint: logout_hint.as_deref(),
                    post_logout_redirect_uri: Some(landing),
                    // The edge does not store the state: the browser only has to return.
                    state: state.as_deref().ok(),
                };
                provider.relying_party.end_session_url(&request).await
            }
        };
        match url {
            Ok(url) => {
                let address = String::from(url?);
                if address.len() <= room {
                    return Some(address);
                }
            }
            Err(error) => {
                tracing::warn!(
                    provider = provider.id,
                    error = &error as &dyn std::error::Error,
                    "signed out here only: the provider cannot be asked"
                );
                return None;
            }
        }
    }
    None
}

/// Names the user without a long ID token (OpenID Connect RP-Initiated Logout 1.0, section 2). Uses the claim
/// `login_hint`, which Microsoft Entra expects, or the provider's session ID. The edge trusts neither.
fn logout_hint(id_token: &str) -> Option<String> {
    let claims: Value = serde_json::from_str(&of_id_token(id_token)?).ok()?;
    let hint = |name| claims.get(name).and_then(Value::as_str);
    let hint = hint("login_hint").or_else(|| hint("sid"))?;
    (hint.len() <= MAX_LOGOUT_HINT_BYTES).then(|| hint.to_owned())
}

/// Retries to end a session whose cookie the browser no longer has.
fn end_later(sign_in: Arc<SignIn>, session: SessionId) {
    let sessions = sign_in.sessions.clone();
    until_done(&sign_in, "ending a session", move || {
        let (sessions, session) = (sessions.clone(), session.clone());
        async move { sessions.end(&session).await.map(|_ended| ()) }
    });
}
