//! Sessions bound to a device (W3C Device Bound Session Credentials). The edge offers a binding after a sign-in,
//! registers and refreshes the session's key, and serves the page where a user waits for the binding.
//!
//! Invariants
//! - Temporary failures answer 5xx. On any other error except 403 with a challenge, browsers end the session.
//! - A refresh costs at most one read. A wrong challenge costs no read and no signature verification.
//! - Both endpoints work without the session cookie, which browsers leave out if another site led here. A
//!   sealed value names the session instead.
//! - Neither checks the origin of a request: browsers report it in three ways, or not at all. No script can
//!   send `Sec-Secure-Session-Id`, and no page of another site has the key that answers a challenge.
//! - A browser that has signed in again gets no cookie of its earlier session.
//! - Only the sign-in that created a session offers to bind it: later another browser may have its cookie.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use chassis::audit::{AuditRecord, Event, Outcome};
use oidc::{unverified_challenge, verify_refresh, verify_registration};
use serde_json::json;
use session_proto::client::SessionError;
use session_proto::timestamp;
use session_proto::v1::{Device, ErrorReason, Session};

use super::SignIn;
use crate::http::device::record_from;
use crate::http::errors::HttpError;
use crate::http::observe::SessionHandle;
use crate::http::pages::NextStep;
use crate::http::pages::language::Language;
use crate::http::{no_store, request};
use crate::providers::sites::Site;
use crate::sessions::cookies::SessionId;
use crate::sessions::device_binding::{DeviceBindings, DeviceBound};
use crate::sessions::metrics::DeviceProofOutcome;
use crate::values::reserved::{DEVICE_REFRESH_PATH, DEVICE_REGISTER_PATH, device_page};
use crate::values::return_to::ReturnTo;

/// Offers a browser to bind its session (section "Secure-Session-Registration").
const REGISTRATION: HeaderName = HeaderName::from_static("secure-session-registration");
/// The browser's proof.
const RESPONSE: &str = "secure-session-response";
/// The session that a browser refreshes.
const SESSION_ID: &str = "sec-secure-session-id";
/// The parameter with the sealed session in the address of its refresh.
const SESSION_PARAMETER: &str = "session";
/// A challenge, with its session.
const CHALLENGE: HeaderName = HeaderName::from_static("secure-session-challenge");

/// How long a browser may take to bind a session: it creates a key in hardware, then calls the edge.
const PATIENCE_MS: u64 = 10_000;

/// The header that offers the browser to bind its new session.
pub(super) fn offer(sign_in: &SignIn, id: &SessionId) -> Option<(HeaderName, HeaderValue)> {
    let bindings = sign_in.bindings.as_ref()?;
    if bindings.settings.mode == DeviceBound::Off {
        return None;
    }
    let challenge = bindings.invitation(id, sign_in.clock.now_ms())?;
    let offer = format!("(ES256 RS256);path=\"{DEVICE_REGISTER_PATH}\";challenge=\"{challenge}\"");
    Some((REGISTRATION, HeaderValue::try_from(offer).ok()?))
}

/// Longest address of the waiting page, in bytes: with a sign-in's cookies it fits a proxy's buffer of 4 KiB.
const MAX_STOP_BYTES: usize = 2_560;

/// The waiting page before `target`, if the settings require bound sessions.
pub(super) fn binding_page_url(sign_in: &SignIn, site: &Site, target: &ReturnTo) -> Option<String> {
    let bindings = sign_in.bindings.as_ref()?;
    if bindings.settings.mode != DeviceBound::Required {
        return None;
    }
    let page = site.at(&device_page(target.as_str()));
    if page.len() <= MAX_STOP_BYTES {
        return Some(page);
    }
    // The head also holds the new session's cookie and the offer to bind it.
    Some(site.at(&device_page(site.base_url.as_str())))
}

/// GET: redirects once the browser has bound its session. Waits for that a moment, then says what is missing.
pub(crate) async fn page(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let headers = request.headers();
    let bindings = ours(&sign_in)?;
    let site = sign_in.sites.of(headers);
    let asked = request::first_parameter(request.uri().query().unwrap_or_default(), "returnTo");
    let target = asked.and_then(|asked| site.return_to(&asked));
    let target = target.unwrap_or_else(|| ReturnTo::base(&site.base_url));
    let login = site.login_url(Some(target.as_str()), None);
    let Some(id) = sign_in.cookies.read(headers) else {
        return redirect(&login);
    };
    let now_ms = sign_in.clock.now_ms();
    if bindings.is_proven(headers, &id, now_ms) {
        return redirect(target.as_str());
    }
    let session = match sign_in.sessions.get(&id).await {
        Ok(session) => session,
        Err(error) if error.reason == ErrorReason::ErrMissingSession => return redirect(&login),
        Err(error) => return Err(failed(error)),
    };
    let bound_at = session
        .device_binding
        .as_ref()
        .and_then(|binding| binding.bound_at.as_ref());
    let since_ms = bound_at
        .or(session.created_at.as_ref())
        .map_or(0, timestamp::to_ms);
    if now_ms < since_ms.saturating_add(PATIENCE_MS) {
        let here = device_page(target.as_str());
        return Ok(no_store(sign_in.pages.binding(Language::of(headers), &here)));
    }
    Ok(NextStep::SignInAgainOrOut(login).of(HttpError::NotBound.into_response()))
}

/// The challenge is not ours, or the session is already bound to another key.
const NO_PROOF_OF_OURS: HttpError = HttpError::Forbidden {
    code: "device_proof",
    words: "The device proof does not belong to any of our sessions.",
};

/// POST: binds a session to the key of the proof. The proof's challenge names the session.
pub(crate) async fn register(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, _) = request.into_parts();
    let headers = &head.headers;
    let bindings = ours(&sign_in)?;
    let device = sign_in.device(&head);
    let now_ms = sign_in.clock.now_ms();
    let proof = text(headers, RESPONSE);
    let Some((id, jwk)) = proof.and_then(|proof| open_invitation(bindings, proof, now_ms)) else {
        // Count it without a record: any client can send one, as often as it likes.
        bindings.metrics.count(DeviceProofOutcome::NotBound);
        return Err(NO_PROOF_OF_OURS);
    };
    let session = sign_in.sessions.bind(&id, jwk).await.map_err(|error| {
        bindings.metrics.count(DeviceProofOutcome::NotBound);
        record(&sign_in, &device, None, Some("not_kept"));
        failed(error)
    })?;
    bindings.metrics.count(DeviceProofOutcome::Bound);
    record(&sign_in, &device, Some(&session), None);
    instructed(bindings, &id, &session, now_ms)
}

/// The session of the proof's challenge, and the proof's key. Checks the challenge first: any client can sign.
fn open_invitation(bindings: &DeviceBindings, proof: &str, now_ms: u64) -> Option<(SessionId, String)> {
    let id = bindings.open_invitation(&unverified_challenge(proof)?, now_ms)?;
    let registration = verify_registration(proof).inspect_err(|error| {
        let error = error as &dyn std::error::Error;
        tracing::info!(error, "the registration proof of a device is not valid");
    });
    Some((id, registration.ok()?.jwk))
}

/// The cookie and the instructions to the browser. A refresh repeats the instructions only if an old secret sealed
/// its address. They make Chrome forget the challenge, and spend one more of its few signatures.
fn instructed(
    bindings: &DeviceBindings,
    id: &SessionId,
    session: &Session,
    now_ms: u64,
) -> Result<Response, HttpError> {
    let address = bindings.address(id).ok_or(HttpError::Internal)?;
    let instructions = json!({
        "session_identifier": session.handle,
        "refresh_url": format!("{DEVICE_REFRESH_PATH}?{SESSION_PARAMETER}={address}"),
        "scope": { "include_site": false },
        // Links of other sites lead here too. Without a refresh, their visitors would seem to lack the key.
        "allowed_refresh_initiators": ["*"],
        "credentials": [{ "type": "cookie", "name": bindings.name, "attributes": bindings.attributes() }],
    });
    let answer = axum::Json(instructions).into_response();
    Ok(with_cookie(bindings, id, session, now_ms, answer))
}

/// Adds the cookie to the answer.
fn with_cookie(
    bindings: &DeviceBindings,
    id: &SessionId,
    session: &Session,
    now_ms: u64,
    answer: Response,
) -> Response {
    let mut answer = no_store(answer);
    if let Some(cookie) = bindings.cookie(id, now_ms) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    answer
        .extensions_mut()
        .insert(SessionHandle(session.handle.clone()));
    answer
}

/// POST: renews the cookie for a proof of the session's key.
pub(crate) async fn refresh(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, _) = request.into_parts();
    let headers = &head.headers;
    let bindings = ours(&sign_in)?;
    let Some(handle) = text(headers, SESSION_ID) else {
        return Err(HttpError::BadRequest("Sec-Secure-Session-Id is missing."));
    };
    let address = request::first_parameter(head.uri.query().unwrap_or_default(), SESSION_PARAMETER);
    let Some((id, is_lasting)) = address.and_then(|address| bindings.open_address(&address)) else {
        return Ok(over(bindings, handle));
    };
    // The browser has signed in again: its proof cookie belongs to the newer session.
    if sign_in
        .cookies
        .read(headers)
        .is_some_and(|newer| newer.expose() != id.expose())
    {
        return Ok(over(bindings, handle));
    }
    let now_ms = sign_in.clock.now_ms();
    let proof = text(headers, RESPONSE).filter(|raw| {
        let challenge = unverified_challenge(raw);
        challenge.is_some_and(|challenge| bindings.is_challenge(&challenge, &id, now_ms))
    });
    let Some(proof) = proof else {
        return Ok(challenged(bindings, &id, handle, now_ms));
    };
    let session = match sign_in.sessions.get(&id).await {
        Ok(session) => session,
        Err(error) if error.reason == ErrorReason::ErrMissingSession => return Ok(over(bindings, handle)),
        Err(error) => return Err(failed(error)),
    };
    let Some(binding) = session
        .device_binding
        .as_ref()
        .filter(|_| session.handle == handle)
    else {
        return Ok(over(bindings, handle));
    };
    match verify_refresh(proof, &binding.jwk) {
        Ok(_) => {
            bindings.metrics.count(DeviceProofOutcome::Refreshed);
            if is_lasting {
                let answer = StatusCode::OK.into_response();
                return Ok(with_cookie(bindings, &id, &session, now_ms, answer));
            }
            instructed(bindings, &id, &session, now_ms)
        }
        Err(error) => {
            tracing::info!(
                session = session.handle,
                error = &error as &dyn std::error::Error,
                "the proof of a device is not valid"
            );
            let device = sign_in.device(&head);
            record(&sign_in, &device, Some(&session), Some("proof"));
            Ok(challenged(bindings, &id, handle, now_ms))
        }
    }
}

/// The bindings; 404 if the settings have none.
fn ours(sign_in: &SignIn) -> Result<&DeviceBindings, HttpError> {
    sign_in.bindings.as_ref().ok_or(HttpError::NotFound)
}

/// The text of a structured string (RFC 9651, section 3.3.3) without parameters. Chromium omits the quotes.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let item = headers.get(name)?.to_str().ok()?.trim();
    let (quoted, ends) = match item.strip_prefix('"') {
        Some(quoted) => (quoted, '"'),
        None => (item, ';'),
    };
    quoted.split(ends).next()
}

/// Ends the session for the browser, which then stops refreshing.
fn over(bindings: &DeviceBindings, handle: &str) -> Response {
    bindings.metrics.count(DeviceProofOutcome::Over);
    no_store(axum::Json(json!({ "session_identifier": handle, "continue": false })).into_response())
}

fn challenged(bindings: &DeviceBindings, id: &SessionId, handle: &str, now_ms: u64) -> Response {
    bindings.metrics.count(DeviceProofOutcome::Challenged);
    let challenge = bindings.challenge(id, now_ms);
    let is_plain = handle.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = HeaderValue::try_from(format!("\"{challenge}\";id=\"{handle}\""));
    let mut response = no_store(StatusCode::FORBIDDEN.into_response());
    if let Some(value) = value.ok().filter(|_| is_plain) {
        response.headers_mut().insert(CHALLENGE, value);
    }
    response
}

fn redirect(to: &str) -> Result<Response, HttpError> {
    let location = HeaderValue::try_from(to).map_err(super::internal)?;
    Ok(no_store(
        (StatusCode::FOUND, [(header::LOCATION, location)]).into_response(),
    ))
}

/// Writes the audit record of a binding or its failure (`reason`). The session's holder can repeat either.
fn record(sign_in: &SignIn, device: &Device, session: Option<&Session>, reason: Option<&'static str>) {
    let outcome = if reason.is_none() {
        Outcome::Success
    } else {
        Outcome::Failure
    };
    sign_in.records.write(&AuditRecord {
        actor: session.map(|session| (session.issuer.as_str(), session.subject.as_str())),
        session: session.map(|session| session.handle.as_str()),
        reason,
        ..record_from(device, Event::DeviceBinding, outcome)
    });
}

fn failed(error: SessionError) -> HttpError {
    if error.reason == ErrorReason::ErrBoundToAnotherKey {
        return NO_PROOF_OF_OURS;
    }
    tracing::warn!(
        error = &error as &dyn std::error::Error,
        "a session could not be bound to its device"
    );
    HttpError::session(error.reason)
}
