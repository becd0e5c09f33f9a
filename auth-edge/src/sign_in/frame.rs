//! Sign-in for pages in frames of other sites (`EDGE_FRAME_ANCESTORS`). Providers refuse frames, and a pop-up window
//! has other partitioned cookies than the frame. So the frame begins the sign-in and finishes it. The window only
//! visits the provider, and gives the response to the frame by `postMessage`.
//!
//! Invariants
//! - The pending sign-in, with its PKCE verifier, is in the frame's own cookie. The response is useless without it.
//! - The window's page sends the response, sealed, only to a page of the edge's own origin that opened the window.
//! - A sealed response is valid for [`HAND_OVER_SECS`], at the origin and the provider that received it. Each sign-in
//!   is redeemed once ([`crate::sign_in::claim`]).
//! - Only pages of the edge's own origin begin or finish a sign-in here.
//!
//! Deliberately absent: a session of the pop-up window.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use prost::Message as _;
use serde_json::json;

use super::internal;
use crate::http::errors::{HttpError, Limit};
use crate::http::no_store;
use crate::http::pages::NextStep;
use crate::http::pages::language::Language;
use crate::http::protect::csrf::{self, Provenance, provenance};
use crate::http::request;
use crate::providers::sites::Site;
use crate::sign_in::authorization_response::AuthorizationResponse;
use crate::sign_in::callback::Callback;
use crate::sign_in::transaction::SignInPlace;
use crate::sign_in::{SignIn, form, login};
use crate::values::refusal::{RefusalReason, SignInStep};

/// How long the frame may take to send the response, in seconds: one message and one request.
const HAND_OVER_SECS: u64 = 60;
/// How far the sealing replica's clock may be ahead of ours, in milliseconds.
const CLOCK_LEAD_MS: u64 = 60_000;
/// Largest form with a sealed response, in bytes: the largest posted response, in base64.
const MAX_FORM_BYTES: usize = 96 * 1024;
/// Separates this AAD from any other use of the seal.
const AAD_LABEL: &[u8] = b"vestibule hand-over v1";
/// The field of the sealed response.
const FIELD: &str = "response";

/// A provider's response on its way from the pop-up window to the frame.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
struct HandOver {
    /// When the window received it, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "1")]
    received_at_ms: u64,
    /// The ID of the provider whose callback received it.
    #[prost(string, tag = "2")]
    provider: String,
    #[prost(message, required, tag = "3")]
    response: AuthorizationResponse,
}

/// POST by the script of the page in the frame: begins a sign-in. Answers with the provider's URL for the window.
pub(crate) async fn begin(State(sign_in): State<Arc<SignIn>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let handled = begin_for_script(&sign_in, &head).await;
    sign_in.answer(SignInStep::Login, &head, handled)
}

async fn begin_for_script(sign_in: &SignIn, head: &Parts) -> Result<Response, HttpError> {
    csrf::check_script(&head.headers, &sign_in.sites.of(&head.headers).base_url)?;
    let mut redirect = login::begin_in_frame(sign_in, head).await?;
    // Without an address it is an error.
    let Some(url) = redirect.headers_mut().remove(header::LOCATION) else {
        return Ok(redirect);
    };
    let url = url.to_str().map_err(internal)?;
    let mut answer = no_store(Json(json!({ "url": url })).into_response());
    for cookie in redirect.headers().get_all(header::SET_COOKIE) {
        answer.headers_mut().append(header::SET_COOKIE, cookie.clone());
    }
    Ok(answer)
}

/// The page of the pop-up window that gives the response to the frame.
pub(super) fn hand_over(
    callback: &Callback<'_>,
    response: AuthorizationResponse,
) -> Result<Response, HttpError> {
    let sign_in = callback.sign_in;
    let hand_over = HandOver {
        received_at_ms: sign_in.clock.now_ms(),
        provider: callback.provider.id.clone(),
        response,
    };
    let sealed = sign_in.keys.seal(&aad(callback.site), &hand_over.encode_to_vec());
    let language = Language::of(&callback.head.headers);
    let mut page = sign_in.pages.hand_over(language, &sealed.map_err(internal)?);
    let headers = page.headers_mut();
    // With the policy of other pages, the window would lose its opener.
    let opener_policy = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener_policy, HeaderValue::from_static("unsafe-none"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(page)
}

/// POST by the page in the frame: finishes the sign-in, and leads the frame to its destination.
pub(crate) async fn finish(State(sign_in): State<Arc<SignIn>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let site = sign_in.sites.of(&head.headers);
    let handled = async {
        if provenance(&head.headers, &site.base_url) != Provenance::SameOrigin {
            return Err(HttpError::Csrf);
        }
        let form = form(body, MAX_FORM_BYTES).await?;
        finish_with(&sign_in, site, &head, &form).await
    };
    sign_in.answer(SignInStep::Callback, &head, handled.await)
}

async fn finish_with(
    sign_in: &Arc<SignIn>,
    site: &Site,
    head: &Parts,
    form: &str,
) -> Result<Response, HttpError> {
    let opened = request::first_parameter(form, FIELD)
        .and_then(|sealed| sign_in.keys.open(&aad(site), &sealed))
        .and_then(|plain| HandOver::decode(plain.as_slice()).ok());
    let provider = |opened: &HandOver| {
        let mut all = sign_in.providers.all.iter();
        all.find(|provider| provider.id == opened.provider)
    };
    let Some((opened, provider)) = opened.and_then(|opened| provider(&opened).map(|found| (opened, found)))
    else {
        sign_in.admit((&sign_in.callback_limit, Limit::Callbacks), head)?;
        let refused = sign_in.reject(SignInStep::Callback, None, head, RefusalReason::Body.into());
        return Ok(NextStep::TryAgain(site.base_url.to_string()).of(refused));
    };
    let callback = Callback {
        sign_in,
        provider,
        site,
        head,
        place: SignInPlace::Frame,
    };
    let now_ms = sign_in.clock.now_ms();
    let ends_ms = opened.received_at_ms.saturating_add(HAND_OVER_SECS * 1000);
    if now_ms >= ends_ms || opened.received_at_ms > now_ms.saturating_add(CLOCK_LEAD_MS) {
        let state = opened.response.state.first().map(String::as_str);
        let expired = RefusalReason::ExpiredTransaction.into();
        return Ok(callback.answer_lost(expired, state, None).await);
    }
    Ok(callback.check(&opened.response).await)
}

fn aad(site: &Site) -> [&[u8]; 2] {
    [AAD_LABEL, site.base_url.as_str().as_bytes()]
}
