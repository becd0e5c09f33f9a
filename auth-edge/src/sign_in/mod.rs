//! Signing in and out: login, callback, logout, and back-channel and front-channel logout.
//!
//! Deliberately absent: routing (`routes.rs`), and requests of users who are already signed in.

mod authorization_response;
pub(crate) mod back_channel;
pub(crate) mod background;
pub(crate) mod callback;
mod claim;
pub(crate) mod device_binding;
mod error;
pub(crate) mod frame;
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

/// Settings of sign-in and sign-out.
#[derive(Clone, Debug)]
pub(crate) struct SignInSettings {
    /// Path of the login route.
    pub(crate) login_path: String,
    /// Query parameters of the login route that the edge sends to the provider.
    pub(crate) login_parameters: Vec<AllowedParameter>,
    /// The page that a visitor reaches after a sign-out.
    pub(crate) post_logout_redirect: Url,
    /// Further URLs a sign-out may lead to.
    pub(crate) logout_return_to_allowed: Vec<Url>,
    /// The request that the edge sends to the provider at sign-out.
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

/// The request that the edge sends to the provider at sign-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProviderLogout {
    /// RP-initiated logout at the discovered `end_session_endpoint`.
    Oidc,
    /// An endpoint with parameters of its own.
    Template(LogoutTemplate),
    /// Nothing.
    Off,
}

/// The state of sign-in and sign-out.
#[derive(Clone)]
pub(crate) struct SignIn {
    /// State that other modules use too.
    pub(crate) shared: Arc<Shared>,
    /// Settings, as read at the start.
    pub(crate) settings: SignInSettings,
    /// Whether browsers leave the session cookie out of every request that a page of another site causes.
    pub(crate) strict_cookie: bool,
    /// Sessions that are bound to a device.
    pub(crate) bindings: Option<DeviceBindings>,
    /// Cookies of pending sign-ins.
    pub(crate) pending: PendingSignIns,
    /// The route table: what a route requires of a sign-in that leads to it.
    pub(crate) routes: Routes,
    /// Logins per address.
    pub(crate) login_limit: Arc<RateLimiter>,
    /// Callbacks without a pending sign-in, per address.
    pub(crate) callback_limit: Arc<RateLimiter>,
    /// Back-channel logouts per address.
    pub(crate) back_channel_limit: Arc<RateLimiter>,
    /// Rejected security events and revocation requests per address.
    pub(crate) refused_events_limit: Arc<RateLimiter>,
    /// Until this monotonic time the edge assumes that the session service receives no security events.
    pub(crate) events_off_until_ms: Arc<AtomicU64>,
    /// The same for Global Token Revocation requests.
    pub(crate) revocations_off_until_ms: Arc<AtomicU64>,
    /// Audit records that clients can repeat.
    pub(crate) records: Arc<RepeatedRecords>,
    /// Front-channel logouts per address.
    pub(crate) front_channel_limit: Arc<RateLimiter>,
    /// Permits for background calls.
    pub(crate) background: Arc<Semaphore>,
    /// Cookies that name the latest user, for kept forms.
    pub(crate) people: PersonCookies,
}

impl Deref for SignIn {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Back-channel logouts per address and minute: enough for a provider that signs out a whole company.
pub(crate) const BACK_CHANNEL_PER_MINUTE: u64 = 6_000;

/// A request that is no navigation neither starts nor finishes a sign-in.
const NOT_A_NAVIGATION: HttpError = HttpError::Forbidden {
    code: "not_a_navigation",
    words: "To sign in, open this address in your browser, not in the background.",
};

/// How long a form may take to arrive: a few kilobytes over the slowest link.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

impl SignIn {
    /// The device that sent the request: a browser or the provider.
    fn device(&self, head: &Parts) -> Device {
        self.shared.device(&head.headers, request::peer(&head.extensions))
    }

    /// The client's network. Rate limits count requests per network.
    fn network(&self, head: &Parts) -> Ipv6Addr {
        let peer = request::peer(&head.extensions);
        network(self.trusted_proxies.client_address(peer, &head.headers))
    }

    /// Counts a request of its address.
    ///
    /// # Errors
    /// The address sent too many requests.
    fn admit(&self, (limiter, limit): (&RateLimiter, Limit), head: &Parts) -> Result<(), HttpError> {
        limiter
            .check(self.network(head), self.clock.now_ms())
            .map_err(|too_many| too_many.refuse(limit))
    }
}

/// Whole milliseconds since `since_ms`, rounded down. Rounding up would make a logout seem older, and a session
/// younger, than it is.
fn elapsed_ms(sign_in: &SignIn, since_ms: u64) -> u64 {
    sign_in
        .clock
        .monotonic_ms()
        .saturating_sub(since_ms)
        .saturating_sub(1)
}

/// A new ID for a logout's `state`, or for one call to the session service. A retry with the same ID has no further
/// effect. It is a random UUID (RFC 9562, section 5.4).
fn request_id() -> Result<String, NoRandomness> {
    let random = random::bytes::<16>()?;
    Ok(uuid::Builder::from_random_bytes(random).into_uuid().to_string())
}

/// Logs an internal error. The client receives no details.
fn internal(error: impl std::error::Error + 'static) -> HttpError {
    tracing::error!(error = &error as &dyn std::error::Error, "fault in the sign-in");
    HttpError::Internal
}

/// Whether the body's content type is a plain form.
fn is_form(headers: &HeaderMap) -> bool {
    is_of_type(headers, "application/x-www-form-urlencoded")
}

/// Whether the body has this content type, with or without parameters.
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

/// The visitor's destination, or the start page.
fn destination(site: &Site, return_to: Option<&ReturnTo>) -> ReturnTo {
    return_to
        .cloned()
        .unwrap_or_else(|| ReturnTo::base(&site.base_url))
}

/// Redirects the visitor and sets cookies. After a POST the status is 303, so the browser posts nothing again (RFC
/// 9700, section 4.12). With a strict session cookie, a page navigates instead: browsers attribute a redirect to the
/// provider's site, and would leave the new cookie out.
fn redirect_with_cookies<const N: usize>(
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
