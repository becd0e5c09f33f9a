//! The login route: begins a transaction and sends the browser to the provider.
//!
//! Invariants: of the query only `returnTo`, the allow-list and what a third party may say are read; the cookie is set only
//! when the provider's address is known; where there are several providers one is chosen before anything else is done. A
//! third party (OpenID Connect Core, section 4) names the issuer, which has to
//! be ours, and where to land, which is judged as any `returnTo`. Deliberately absent: any state on the server.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::{AuthorizationRequest, RedirectUrl, ResponseMode};
use url::Url;

use crate::http::errors::{Handler, HttpError};
use crate::http::pages;
use crate::http::request::{self, FetchSite};
use crate::http::response::no_content;
use crate::providers::{IdentityProvider, NotChosen, ProviderHint};
use crate::route_table::Route;
use crate::sign_in::SignIn;
use crate::sign_in::login_parameters::LoginParameters;
use crate::sign_in::transaction::Transaction;
use crate::sign_in::{NOT_A_VISIT, landing};
use crate::values::login_parameters::CONNECTION;
use crate::values::return_to::ReturnTo;

/// What a third party may say (OpenID Connect Core, section 4).
const THIRD_PARTY_PARAMETERS: [&str; 3] = ["iss", "login_hint", "target_link_uri"];
/// Largest form of a third party, in bytes: three parameters, of which none is used beyond about a thousand.
const MAX_FORM_BYTES: usize = 8 * 1024;
/// Who may ask for whatever is no third party's form.
const VISITS: &str = "GET, HEAD";

/// GET starts a sign-in when it is a visit; a form that a third party posts becomes one. HEAD and prefetches start nothing.
pub(crate) async fn handle(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, body) = request.into_parts();
    if head.method == Method::HEAD || request::is_prefetch(&head.headers) {
        return Ok(no_content());
    }
    if !request::is_script(&head.headers) && !request::is_navigation(&head.headers) {
        return Err(NOT_A_VISIT);
    }
    if head.method == Method::POST {
        return third_party(&sign_in, &head, body).await;
    }
    let query = head.uri.query().unwrap_or_default();
    let site = sign_in.sites.of(&head.headers);
    let iss = request::first_parameter(query, "iss");
    let return_to = request::first_parameter(query, "returnTo")
        .or_else(|| request::first_parameter(query, "target_link_uri"))
        .and_then(|raw| ReturnTo::parse(site.base_url(), &raw));
    let route = return_to.as_ref().and_then(|to| sign_in.routes.route_of(to));
    let connection = request::first_parameter(query, CONNECTION).filter(|_| sign_in.providers.several());
    let named = ProviderHint {
        issuer: iss.as_deref(),
        connection: connection.as_deref(),
        by_route: route.as_deref().and_then(Route::connection),
    };
    let provider = sign_in
        .providers
        .choose(named, site, return_to.as_ref())
        .map_err(not_chosen)?;
    if request::is_script(&head.headers) {
        let return_to = return_to.as_ref().map(ReturnTo::as_str);
        let login_url = site.login_url(return_to, connection.as_deref());
        return Err(HttpError::LoginRequired { login_url });
    }
    if let Some(page) = once_more(&sign_in, &head) {
        return Ok(page);
    }
    let now_ms = sign_in.clock.now_ms();
    let address = sign_in
        .devices
        .trusted_proxies
        .client_address(request::peer(&head.extensions), &head.headers);
    sign_in
        .login_limit
        .check(address, now_ms)
        .map_err(|too_many| HttpError::RateLimited {
            retry_after_secs: too_many.retry_after_secs,
        })?;

    let mut wanted = LoginParameters::of(
        query,
        &sign_in.settings.login_parameters,
        route.as_deref(),
        provider.party.settings().organization.is_some(),
    );
    if wanted.silent() && sign_in.pending.was_silent(&head.headers, &provider.id) {
        if wanted.silent_by_visitor {
            // It found nobody a moment ago: another one would go round in circles.
            return Ok(landing(&sign_in, site, &Method::GET, return_to.as_ref(), []));
        }
        wanted.ask_after_all();
    }
    let transaction = begin(&sign_in, provider, &wanted, return_to, &head.headers)?;
    let url = authorization_url(
        &sign_in,
        provider,
        &site.at(&provider.callback_path),
        &transaction,
        &wanted,
    )
    .await?;
    let mode = provider.response_mode();
    let cookies = sign_in.pending.add(&head.headers, &transaction, mode, now_ms);
    let mut response = to_provider(&url)?;
    for cookie in cookies.map_err(internal)? {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The transaction of a sign-in with these parameters.
fn begin(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    wanted: &LoginParameters,
    return_to: Option<ReturnTo>,
    headers: &HeaderMap,
) -> Result<Transaction, HttpError> {
    let mut transaction = Transaction::begin(provider.mark, sign_in.clock.now_ms()).map_err(internal)?;
    transaction.return_to = return_to;
    transaction.max_age = wanted.max_age.or(provider.party.settings().configured_max_age());
    transaction.acr_values = wanted.acr_values().map(str::to_owned);
    transaction.silent = wanted.silent();
    transaction.organization.clone_from(&wanted.organization);
    if provider.response_mode() == ResponseMode::FormPost || sign_in.strict_cookie {
        transaction.session = sign_in.cookies.read(headers);
    }
    Ok(transaction)
}

/// Where the provider signs people in for this transaction.
async fn authorization_url(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    callback: &str,
    transaction: &Transaction,
    wanted: &LoginParameters,
) -> Result<Url, HttpError> {
    let redirect_uri = RedirectUrl::new(callback.to_owned()).map_err(internal)?;
    let authorization = AuthorizationRequest {
        redirect_uri: &redirect_uri,
        state: &transaction.state,
        nonce: &transaction.nonce,
        verifier: &transaction.verifier,
        extra: &wanted.extra,
        max_age: wanted.max_age,
        now: sign_in.clock.now_ms() / 1000,
    };
    let url = provider.party.authorization_url(&authorization).await;
    url.map_err(|error| {
        tracing::warn!(
            provider = provider.id,
            error = &error as &dyn std::error::Error,
            "no sign-in can start"
        );
        sign_in.metrics.login("unavailable", &provider.id);
        HttpError::Provider(Handler::Login, error.outage())
    })
}

fn to_provider(url: &Url) -> Result<Response, HttpError> {
    let location = HeaderValue::try_from(url.as_str()).map_err(internal)?;
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    Ok((StatusCode::FOUND, headers).into_response())
}

/// A third party's form (OpenID Connect Core, section 4): the same as a visit of our own, since the browser leaves Lax cookies
/// out of a POST from elsewhere, by which pending sign-ins are bounded and the session before is known.
async fn third_party(sign_in: &SignIn, head: &Parts, body: Body) -> Result<Response, HttpError> {
    if request::is_script(&head.headers) {
        return Err(NOT_A_VISIT);
    }
    if !super::is_form(&head.headers) {
        return Err(HttpError::MethodNotAllowed(VISITS));
    }
    let form = super::form(body, MAX_FORM_BYTES).await?;
    if request::first_parameter(&form, "iss").is_none() {
        return Err(HttpError::MethodNotAllowed(VISITS));
    }
    let said = THIRD_PARTY_PARAMETERS.iter();
    let said = said.filter_map(|name| Some((name, request::first_parameter(&form, name)?)));
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(said);
    let here = format!("{}?{}", sign_in.settings.login_path, query.finish());
    let location = HeaderValue::try_from(here).map_err(internal)?;
    const NO_STORE: (HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location), NO_STORE]).into_response())
}

/// A page that comes here again by itself, where another site's page sent the visitor and the strict session cookie was left
/// out for that: only then is it known which session the sign-in replaces.
fn once_more(sign_in: &SignIn, head: &Parts) -> Option<Response> {
    let without_cookie = sign_in.strict_cookie && sign_in.cookies.read(&head.headers).is_none();
    if !without_cookie || request::site(&head.headers) == FetchSite::Own {
        return None;
    }
    let base_url = sign_in.sites.of(&head.headers).base_url();
    let here = base_url.join(head.uri.path_and_query()?.as_str()).ok()?;
    Some(pages::onward(here.as_str()))
}

fn not_chosen(why: NotChosen) -> HttpError {
    match why {
        NotChosen::OtherIssuer => {
            HttpError::BadRequest("This sign-in was started for another provider than ours.")
        }
        NotChosen::UnknownConnection => HttpError::BadRequest(
            "There is no such connection. Ask for one that is configured, or for none at all.",
        ),
        NotChosen::OtherHost => {
            HttpError::BadRequest("People of that connection sign in at another address than this one.")
        }
    }
}

/// Logs a fault of our own and hides it.
pub(super) fn internal(error: impl std::error::Error + 'static) -> HttpError {
    tracing::error!(error = &error as &dyn std::error::Error, "fault in the sign-in");
    HttpError::Internal
}
