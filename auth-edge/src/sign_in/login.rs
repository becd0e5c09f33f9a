//! The login route: begins a transaction and sends the browser to the provider.
//!
//! A third party (OpenID Connect Core, section 4) names an issuer and a destination. The issuer has to be a
//! configured one. The edge checks the destination like any `returnTo`.
//!
//! Invariants
//! - The route reads only `returnTo`, the allow-list and the parameters of a third party from the query.
//! - The edge sets the cookie only once it knows the provider's address.
//! - If there are several providers, the edge chooses one before it does anything else.
//!
//! Deliberately absent: state on the server.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::{AuthorizationRequest, RedirectUrl, ResponseMode};

use crate::http::answer_head;
use crate::http::errors::{HttpError, Limit};
use crate::http::pages::NextStep;
use crate::http::pages::language::Language;
use crate::http::request;
use crate::http::{no_content, no_store};
use crate::providers::sites::Site;
use crate::providers::{IdentityProvider, ProviderHint};
use crate::route_table::Route;
use crate::sessions::cookies::SessionId;
use crate::sign_in::SignIn;
use crate::sign_in::error::SignInError;
use crate::sign_in::login_parameters::LoginParameters;
use crate::sign_in::pending::reminders::Reminder;
use crate::sign_in::transaction::{SignInPlace, Transaction};
use crate::sign_in::{NOT_A_NAVIGATION, destination, internal, redirect_with_cookies};
use crate::values::allowed_parameters::CONNECTION;
use crate::values::refusal::{RefusalReason, SignInStep};
use crate::values::return_to::ReturnTo;

/// The parameters that a third party may send (OpenID Connect Core, section 4).
const THIRD_PARTY_PARAMETERS: [&str; 3] = ["iss", "target_link_uri", "login_hint"];
/// Largest form of a third party, in bytes: three parameters, each used up to about a thousand bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;
/// Longest address in the header of a page that navigates, in bytes. The longest returnTo and parameters fit.
const MAX_ONCE_MORE_BYTES: usize = 2_560;
/// The methods of this route for all requests except a third party's form.
const VISITS: &str = "GET, HEAD";

/// A visit by GET starts a sign-in; a third party's form redirects to one. HEAD and prefetches start nothing.
pub(crate) async fn handle(State(sign_in): State<Arc<SignIn>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let handled = visit(&sign_in, &head, body).await;
    sign_in.answer(SignInStep::Login, &head, handled)
}

async fn visit(sign_in: &SignIn, head: &Parts, body: Body) -> Result<Response, HttpError> {
    if head.method == Method::HEAD || request::is_prefetch(&head.headers) {
        return Ok(no_content());
    }
    let by_script = request::is_script(&head.headers);
    if !by_script && !request::is_navigation(&head.headers) {
        return Err(NOT_A_NAVIGATION);
    }
    if head.method == Method::POST {
        return third_party(sign_in, head, body).await;
    }
    if request::is_link_opener(&head.headers)
        && let Some(here) = here(sign_in, head)
    {
        return Ok(sign_in.pages.reopen(Language::of(&head.headers), &here));
    }
    let login = match LoginRequest::read(sign_in, head) {
        Ok(login) => login,
        Err(reason) => return Ok(sign_in.reject(SignInStep::Login, None, head, reason.into())),
    };
    if by_script {
        return Err(HttpError::LoginRequired(login.url()));
    }
    let session = sign_in.cookies.read(&head.headers);
    // A page of another site sent the visitor, so the browser left out the strict session cookie. A page that
    // navigates here again brings the cookie, which says which session the sign-in replaces.
    let comes_from_elsewhere = sign_in.strict_cookie && request::is_cross_site(&head.headers);
    if comes_from_elsewhere
        && session.is_none()
        && let Some(here) = here(sign_in, head)
    {
        return Ok(sign_in.pages.onward(Language::of(&head.headers), &here));
    }
    if let Err(too_many) = sign_in.admit((&sign_in.login_limit, Limit::Logins), head) {
        let response = sign_in.reject_with(
            SignInStep::Login,
            None,
            head,
            RefusalReason::RateLimited.into(),
            too_many,
        );
        return Ok(match here(sign_in, head) {
            Some(here) => NextStep::Retry(here).of(response),
            None => response,
        });
    }
    let Some(mut wanted) = login.read_parameters(sign_in, head) else {
        return Ok(redirect_with_cookies(
            sign_in,
            &head.headers,
            &Method::GET,
            destination(login.site, login.return_to.as_ref()).as_str(),
            [],
        ));
    };
    require_what_session_demands(sign_in, &login, session.as_ref(), &mut wanted).await;
    begin(sign_in, login, &wanted, SignInPlace::Window, (head, session)).await
}

/// Begins a sign-in at a click in a frame, where the provider may ask the user. The answer leads to the provider.
pub(super) async fn begin_in_frame(sign_in: &SignIn, head: &Parts) -> Result<Response, HttpError> {
    let mut login = match LoginRequest::read(sign_in, head) {
        Ok(login) => login,
        Err(reason) => return Ok(sign_in.reject(SignInStep::Login, None, head, reason.into())),
    };
    sign_in.admit((&sign_in.login_limit, Limit::Logins), head)?;
    login.return_to = Some(destination(login.site, login.return_to.as_ref()));
    let mut wanted = login.collect_parameters(sign_in, head);
    if wanted.silent() {
        wanted.allow_interaction();
    }
    let session = sign_in.cookies.read(&head.headers);
    require_what_session_demands(sign_in, &login, session.as_ref(), &mut wanted).await;
    begin(sign_in, login, &wanted, SignInPlace::Frame, (head, session)).await
}

/// Requests a new authentication if the session requires one. Without it, the next session would require it too.
async fn require_what_session_demands(
    sign_in: &SignIn,
    login: &LoginRequest<'_>,
    session: Option<&SessionId>,
    wanted: &mut LoginParameters,
) {
    if let Some(session) = session
        && let Ok(session) = sign_in.sessions.find(session).await
        && let Some(demand) = &session.sign_in_demand
        && login.provider.is_issuer(&session.issuer)
    {
        wanted.require_new_sign_in(demand);
    }
}

/// Only a third party's parameters, each once, if they fit. A login accepts no longer ones.
fn third_party_query(encoded: &str) -> String {
    let mut query = String::new();
    for name in THIRD_PARTY_PARAMETERS {
        if let Some(value) = request::first_parameter(encoded, name) {
            let longer = url::form_urlencoded::Serializer::new(query.clone())
                .append_pair(name, &value)
                .finish();
            if longer.len() <= MAX_ONCE_MORE_BYTES {
                query = longer;
            }
        }
    }
    query
}

/// A visit to the login route, with its destination and its provider.
struct LoginRequest<'a> {
    /// The part of the query to read: a third party must not add parameters of our own logins.
    query: Cow<'a, str>,
    site: &'a Site,
    provider: &'a IdentityProvider,
    /// The provider ID in the query.
    connection: Option<String>,
    /// The visitor's destination.
    return_to: Option<ReturnTo>,
    /// The route of the destination.
    route: Option<Arc<Route>>,
}

impl<'a> LoginRequest<'a> {
    fn read(sign_in: &'a SignIn, head: &'a Parts) -> Result<Self, RefusalReason> {
        let query = head.uri.query().unwrap_or_default();
        let site = sign_in.sites.of(&head.headers);
        let iss = request::first_parameter(query, "iss");
        let query = match iss {
            None => Cow::Borrowed(query),
            Some(_) => Cow::Owned(third_party_query(query)),
        };
        let return_to = request::first_parameter(&query, "returnTo")
            .or_else(|| request::first_parameter(&query, "target_link_uri"))
            .and_then(|raw| site.return_to(&raw));
        let route = return_to
            .as_ref()
            .and_then(|to| sign_in.routes.load().route_of(to));
        let connection = request::first_parameter(&query, CONNECTION);
        let connection = connection.filter(|_| sign_in.providers.several);
        let named = ProviderHint {
            issuer: iss.as_deref(),
            connection: connection.as_deref(),
            by_route: route.as_deref().and_then(Route::connection),
        };
        let provider = sign_in.providers.choose(named, site)?;
        Ok(Self {
            query,
            site,
            provider,
            connection,
            return_to,
            route,
        })
    }

    /// The URL of the same login, for a navigation.
    fn url(&self) -> String {
        let return_to = self.return_to.as_ref().map(ReturnTo::as_str);
        self.site.login_url(return_to, self.connection.as_deref())
    }

    /// The parameters that the query, the settings and the route give to the authorization request.
    fn collect_parameters(&self, sign_in: &SignIn, head: &Parts) -> LoginParameters {
        let mut wanted = LoginParameters::of(
            &self.query,
            &sign_in.settings.login_parameters,
            self.route.as_deref(),
            self.provider.relying_party.settings().organization.is_some(),
        );
        wanted.needs_account_prompt = sign_in
            .pending
            .is_reminded(&head.headers, Reminder::Left(&self.provider.id));
        wanted
    }

    /// The login's parameters for the authorization request. `None` if the visitor requests a silent sign-in
    /// that would loop: the user signed out here, or a recent silent sign-in found no user.
    fn read_parameters(&self, sign_in: &SignIn, head: &Parts) -> Option<LoginParameters> {
        let mut wanted = self.collect_parameters(sign_in, head);
        let silent = Reminder::Silent(&self.provider.id);
        let is_known_signed_out =
            wanted.needs_account_prompt || sign_in.pending.is_reminded(&head.headers, silent);
        if wanted.silent() && is_known_signed_out {
            if wanted.is_silent_by_query {
                return None;
            }
            wanted.allow_interaction();
        }
        Some(wanted)
    }
}

/// Sends the browser to the provider, with a transaction for the answer.
async fn begin(
    sign_in: &SignIn,
    login: LoginRequest<'_>,
    wanted: &LoginParameters,
    place: SignInPlace,
    (head, session): (&Parts, Option<SessionId>),
) -> Result<Response, HttpError> {
    let LoginRequest { site, provider, .. } = login;
    let now_ms = sign_in.clock.now_ms();
    let begun = Transaction::begin(&sign_in.keys, provider.issuer(), login.return_to, place, now_ms);
    let mut transaction = begun.map_err(internal)?;
    let configured_max_age = provider.relying_party.settings().configured_max_age();
    let record = &mut transaction.record;
    record.max_age = wanted.max_age.or(configured_max_age);
    record.acr_values = wanted.acr_values().map(str::to_owned);
    record.silent = wanted.silent();
    record.organization.clone_from(&wanted.organization);
    if provider.response_mode() == ResponseMode::FormPost || sign_in.strict_cookie {
        record.session = session.map(|session| session.expose().to_owned());
    }
    let authorization = AuthorizationRequest {
        redirect_uri: &RedirectUrl::new(site.at(&provider.callback_path)).map_err(internal)?,
        state: &transaction.state,
        nonce: &transaction.nonce,
        verifier: &transaction.verifier,
        extra: &wanted.extra,
        max_age: wanted.max_age,
        needs_account_prompt: wanted.needs_account_prompt,
        now: now_ms / 1000,
    };
    let url = match provider.relying_party.authorization_url(&authorization).await {
        Ok(url) => url,
        Err(error) => {
            let error = SignInError::from(error);
            // The provider answered: it rejects the pushed authorization request.
            let outcome = match error.reason {
                RefusalReason::RequestRefused => "rejected",
                _ => "unavailable",
            };
            sign_in.metrics.login(outcome, &provider.id);
            return Ok(sign_in.reject(SignInStep::Login, Some(provider), head, error));
        }
    };
    let cookies = sign_in
        .pending
        .add(&head.headers, &transaction, provider.response_mode(), now_ms);
    let headers = [
        (
            header::LOCATION,
            HeaderValue::try_from(url.as_str()).map_err(internal)?,
        ),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let mut response = no_store((StatusCode::FOUND, headers).into_response());
    // The last cookie is the transaction's own and must be set. Cleared ones follow while the head has room.
    let mut cookies = cookies.map_err(internal)?;
    let own = cookies.pop();
    response
        .headers_mut()
        .extend(own.map(|own| (header::SET_COOKIE, own)));
    answer_head::append_what_fits(response.headers_mut(), &header::SET_COOKIE, cookies);
    Ok(response)
}

/// Redirects a third party's form (OpenID Connect Core, section 4) to a visit. Browsers leave Lax cookies out of a
/// cross-site POST, and these limit pending sign-ins and name the session to replace.
async fn third_party(sign_in: &SignIn, head: &Parts, body: Body) -> Result<Response, HttpError> {
    if request::is_script(&head.headers) {
        return Err(NOT_A_NAVIGATION);
    }
    if !super::is_form(&head.headers) {
        return Err(HttpError::MethodNotAllowed(VISITS.into()));
    }
    let form = super::form(body, MAX_FORM_BYTES).await?;
    if request::first_parameter(&form, "iss").is_none() {
        return Err(HttpError::MethodNotAllowed(VISITS.into()));
    }
    let here = format!("{}?{}", sign_in.settings.login_path, third_party_query(&form));
    let location = HeaderValue::try_from(here).map_err(internal)?;
    Ok(no_store(
        (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
    ))
}

/// The absolute URL of this request, if it fits into the head of a page.
fn here(sign_in: &SignIn, head: &Parts) -> Option<String> {
    let base_url = &sign_in.sites.of(&head.headers).base_url;
    let here = base_url.join(head.uri.path_and_query()?.as_str()).ok()?;
    (here.as_str().len() <= MAX_ONCE_MORE_BYTES).then(|| here.into())
}
