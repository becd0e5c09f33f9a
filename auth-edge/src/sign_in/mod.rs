//! Signing in and out: login, callback, logout, and back-channel and front-channel logout.
//!
//! Deliberately absent: routing (`routes.rs`) and everything about requests of people who are already signed in.

mod authorization_response;
pub(crate) mod back_channel;
pub(crate) mod background;
pub(crate) mod callback;
mod claim;
pub(crate) mod device_binding;
mod error;
pub(crate) mod front_channel;
pub(crate) mod login;
pub(crate) mod login_parameters;
pub(crate) mod logout;
pub(crate) mod pending;
mod posted_name;
mod promised_claims;
mod redemption;
pub(crate) mod security_events;
pub(crate) mod transaction;
pub(crate) mod user;

use std::net::Ipv6Addr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use chassis::audit::RepeatedRecords;
use chassis::random::{self, NoRandomness};
use chassis::serve::network;
use oidc::LogoutTemplate;
use provider_settings::checkup::UserinfoReading;
use session_proto::v1::Device;
use tokio::sync::Semaphore;
use url::Url;

use self::pending::PendingSignIns;
use crate::http::errors::{HttpError, Limit};
use crate::http::pages::language::Language;
use crate::http::protect::rate_limit::RateLimiter;
use crate::http::protect::slow_client;
use crate::http::shared::Shared;
use crate::http::{no_store, request};
use crate::kept_form::person_cookie::PersonCookies;
use crate::providers::sites::Site;
use crate::route_table::Routes;
use crate::sessions::device_binding::DeviceBindings;
use crate::values::allowed_parameters::AllowedParameter;
use crate::values::return_to::ReturnTo;

/// Signing in and out.
#[derive(Clone, Debug)]
pub(crate) struct SignInSettings {
    /// Path of the login route.
    pub(crate) login_path: String,
    /// Query parameters of the login route that reach the provider.
    pub(crate) login_parameters: Vec<AllowedParameter>,
    /// Where a visitor lands after sign-out.
    pub(crate) post_logout_redirect: Url,
    /// Further URLs a sign-out may lead to.
    pub(crate) logout_return_to_allowed: Vec<Url>,
    /// What is sent to the provider at sign-out.
    pub(crate) provider_logout: ProviderLogout,
    /// When sign-in reads userinfo.
    pub(crate) userinfo_at_login: UserinfoReading,
    /// Whether sessions keep the ID token.
    pub(crate) store_id_token: bool,
    /// Claims left out of `user`.
    pub(crate) claim_filter: Vec<String>,
    /// How long a sign-in may take, in seconds.
    pub(crate) transaction_duration_secs: u64,
    /// Whether the front-channel logout route exists.
    pub(crate) frontchannel_logout: bool,
}

/// What is sent to the provider when somebody signs out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProviderLogout {
    /// RP-initiated logout at the discovered `end_session_endpoint`.
    Oidc,
    /// An endpoint with parameters of its own.
    Template(LogoutTemplate),
    /// Nothing.
    Off,
}

/// What signing in and out is made of.
#[derive(Clone)]
pub(crate) struct SignIn {
    /// What other rooms use too.
    pub(crate) shared: Arc<Shared>,
    /// Settings, as read at the start.
    pub(crate) settings: SignInSettings,
    /// Whether browsers leave the session cookie out of every request that a page of another site causes.
    pub(crate) strict_cookie: bool,
    /// Sessions that are bound to a device.
    pub(crate) bindings: Option<DeviceBindings>,
    /// Cookies of pending sign-ins.
    pub(crate) pending: PendingSignIns,
    /// The route table: what the route requires that a sign-in leads to.
    pub(crate) routes: Routes,
    /// Logins per address.
    pub(crate) login_limit: Arc<RateLimiter>,
    /// Callbacks without a pending sign-in, per address.
    pub(crate) callback_limit: Arc<RateLimiter>,
    /// Back-channel logouts per address.
    pub(crate) back_channel_limit: Arc<RateLimiter>,
    /// Security events per address that were refused.
    pub(crate) refused_events_limit: Arc<RateLimiter>,
    /// Until when the session service receives no security events, as far as this edge knows, by its monotonic clock.
    pub(crate) events_off_until_ms: Arc<AtomicU64>,
    /// Audit records that clients can repeat.
    pub(crate) records: Arc<RepeatedRecords>,
    /// Front-channel logouts per address.
    pub(crate) front_channel_limit: Arc<RateLimiter>,
    /// Permits for calls in the background.
    pub(crate) background: Arc<Semaphore>,
    /// Who was here last, where forms are kept.
    pub(crate) people: PersonCookies,
}

impl Deref for SignIn {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// A provider that signs out a whole company may send many; somebody who guesses sends more.
pub(crate) const BACK_CHANNEL_PER_MINUTE: u64 = 6_000;

/// What loads an address without visiting it starts and finishes no sign-in.
const NOT_A_VISIT: HttpError = HttpError::Forbidden {
    code: "not_a_navigation",
    words: "Signing in needs a visit to this address, not a request in the background.",
};

/// How long a form may take to arrive: a few kilobytes over the slowest link.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

impl SignIn {
    /// Whose request it is: a browser's, or the provider's own.
    fn device(&self, head: &Parts) -> Device {
        self.shared.device(&head.headers, request::peer(&head.extensions))
    }

    /// The network of the client, by which its requests are limited.
    fn network(&self, head: &Parts) -> Ipv6Addr {
        let peer = request::peer(&head.extensions);
        network(self.trusted_proxies.client_address(peer, &head.headers))
    }

    /// Counts a request among those of its address.
    ///
    /// # Errors
    /// There were too many.
    fn admit(&self, (limiter, limit): (&RateLimiter, Limit), head: &Parts) -> Result<(), HttpError> {
        limiter
            .check(self.network(head), self.clock.now_ms())
            .map_err(|too_many| too_many.refuse(limit))
    }
}

/// Milliseconds of this edge's clock since `since_ms`, and never more than have passed. Both times are cut to whole milliseconds, so their
/// difference can be one too many: a logout would seem to be older, and a session younger, than it is.
fn elapsed_ms(sign_in: &SignIn, since_ms: u64) -> u64 {
    sign_in
        .clock
        .monotonic_ms()
        .saturating_sub(since_ms)
        .saturating_sub(1)
}

/// A fresh name for one call to the session service, so that repeating it does nothing twice, or a `state`: a random UUID (RFC 9562,
/// section 5.4).
fn request_id() -> Result<String, NoRandomness> {
    let random = random::bytes::<16>()?;
    Ok(uuid::Builder::from_random_bytes(random).into_uuid().to_string())
}

/// Logs a fault of our own and hides it.
fn internal(error: impl std::error::Error + 'static) -> HttpError {
    tracing::error!(error = &error as &dyn std::error::Error, "fault in the sign-in");
    HttpError::Internal
}

/// Whether the body says it is a plain form.
fn is_form(headers: &HeaderMap) -> bool {
    is_of_type(headers, "application/x-www-form-urlencoded")
}

/// Whether the body says it is of this media type, with or without parameters.
fn is_of_type(headers: &HeaderMap, media_type: &str) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(media_type)
}

/// Reads a form's body as text, at most `limit` bytes of it.
async fn form(body: Body, limit: usize) -> Result<String, HttpError> {
    let read = tokio::time::timeout(FORM_TIMEOUT, to_bytes(body, limit)).await;
    let bytes = read.map_err(|_late| HttpError::BadRequest("The request's body did not arrive in time."))?;
    let bytes = bytes.map_err(|error| slow_client::unread(&error))?;
    String::from_utf8(bytes.to_vec()).map_err(|_| HttpError::BadRequest("The request's body is not UTF-8."))
}

/// Where a visitor wanted to go, or the start page.
fn destination(site: &Site, return_to: Option<&ReturnTo>) -> ReturnTo {
    return_to
        .cloned()
        .unwrap_or_else(|| ReturnTo::base(&site.base_url))
}

/// The redirect to where a visitor wanted to go, with cookies. After a POST it is 303, so that nothing is posted again
/// (RFC 9700, section 4.12). With a strict session cookie it is a page that goes there by itself: a redirect still counts
/// as caused by the provider's site, and the browser would leave the new cookie out.
fn landing<const N: usize>(
    sign_in: &SignIn,
    headers: &HeaderMap,
    method: &Method,
    target: &str,
    cookies: [Option<HeaderValue>; N],
) -> Response {
    let mut response = if sign_in.strict_cookie {
        sign_in.pages.onward(Language::of(headers), target)
    } else if *method == Method::POST {
        StatusCode::SEE_OTHER.into_response()
    } else {
        StatusCode::FOUND.into_response()
    };
    if response.status().is_redirection()
        && let Ok(location) = HeaderValue::try_from(target)
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    let headers = response.headers_mut();
    for cookie in cookies.into_iter().flatten() {
        headers.append(header::SET_COOKIE, cookie);
    }
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    no_store(response)
}
