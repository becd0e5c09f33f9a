//! The login route: begins a transaction and sends the browser to the provider.
//!
//! A third party (OpenID Connect Core, section 4) names the issuer, which has to be ours, and where to land, which is judged
//! as any `returnTo`.
//!
//! Invariants
//! - Of the query only `returnTo`, the allow-list and what a third party may say are read.
//! - The cookie is set only when the provider's address is known.
//! - Where there are several providers one is chosen before anything else is done.
//!
//! Deliberately absent: any state on the server.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::{AuthorizationRequest, ProviderError, RedirectUrl, ResponseMode};
use session_proto::v1::SignInDemand;
use url::Url;

use crate::http::answer_head;
use crate::http::errors::{HttpError, Limit};
use crate::http::no_content;
use crate::http::pages::NextStep;
use crate::http::pages::language::Language;
use crate::http::request::{self, FetchSite};
use crate::providers::sites::Site;
use crate::providers::{IdentityProvider, ProviderHint};
use crate::route_table::Route;
use crate::sessions::cookies::SessionId;
use crate::sign_in::SignIn;
use crate::sign_in::error::SignInError;
use crate::sign_in::login_parameters::LoginParameters;
use crate::sign_in::transaction::{IssuerHash, Transaction};
use crate::sign_in::{NOT_A_VISIT, destination, internal, landing};
use crate::values::allowed_parameters::CONNECTION;
use crate::values::refusal::{RefusalReason, SignInStep};
use crate::values::return_to::ReturnTo;

/// What a third party may say (OpenID Connect Core, section 4).
const THIRD_PARTY_PARAMETERS: [&str; 3] = ["iss", "login_hint", "target_link_uri"];
/// Largest form of a third party, in bytes: three parameters, of which none is used beyond about a thousand.
const MAX_FORM_BYTES: usize = 8 * 1024;
/// Longest address that a page goes on to by a header, in bytes: a returnTo and parameters at their longest are shorter.
const MAX_ONCE_MORE_BYTES: usize = 2_560;
/// Who may ask for whatever is no third party's form.
const VISITS: &str = "GET, HEAD";

/// GET starts a sign-in when it is a visit; a form that a third party posts becomes one. HEAD and prefetches start nothing.
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
        return Err(NOT_A_VISIT);
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
        Err(reason) => {
            let error = SignInError::from(reason);
            let answer = error.answer(SignInStep::Login);
            return Ok(sign_in.reject(SignInStep::Login, None, head, error, answer));
        }
    };
    if by_script {
        return Err(HttpError::LoginRequired {
            login_url: login.url(),
        });
    }
    let session = sign_in.cookies.read(&head.headers);
    if let Some(page) = once_more(sign_in, head, session.as_ref()) {
        return Ok(page);
    }
    if let Err(too_many) = sign_in.admit((&sign_in.login_limit, Limit::Logins), head) {
        let error = RefusalReason::RateLimited.into();
        let response = sign_in.reject(SignInStep::Login, None, head, error, too_many);
        return Ok(match here(sign_in, head) {
            Some(here) => NextStep::Retry(here).of(response),
            None => response,
        });
    }
    let Some(mut wanted) = login.wanted(sign_in, head) else {
        return Ok(landing(
            sign_in,
            &head.headers,
            &Method::GET,
            destination(login.site, login.return_to.as_ref()).as_str(),
            [],
        ));
    };
    if let Some(session) = &session
        && let Some(demand) = owed(sign_in, login.provider, session).await
    {
        wanted.prove_anew(&demand);
    }
    begin(sign_in, login, &wanted, (head, session)).await
}

/// The sign-in that the session of the browser owes, as far as it can be learnt: a session that begins without it owes it as well.
/// What it owes it owes to its own provider.
async fn owed(sign_in: &SignIn, provider: &IdentityProvider, id: &SessionId) -> Option<SignInDemand> {
    if !sign_in.sessions.demands_sign_ins() {
        return None;
    }
    let session = sign_in.sessions.get(id).await.ok()?;
    session
        .sign_in_demand
        .filter(|_| provider.is_issuer(&session.issuer))
}

/// What is read of a login's query. A third party may not add parameters of our own logins.
struct Query<'a>(Cow<'a, str>);

impl<'a> Query<'a> {
    fn of(query: &'a str) -> Self {
        match request::first_parameter(query, "iss") {
            None => Self(Cow::Borrowed(query)),
            Some(_third_party) => Self(Cow::Owned(third_party_query(query))),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        request::first_parameter(&self.0, name)
    }
}

/// The parameters of a third party alone, each once.
fn third_party_query(encoded: &str) -> String {
    let said = THIRD_PARTY_PARAMETERS.iter();
    let said = said.filter_map(|name| Some((name, request::first_parameter(encoded, name)?)));
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(said);
    query.finish()
}

/// A visit to the login route: where it leads, and at which provider it signs in.
struct LoginRequest<'a> {
    query: Query<'a>,
    site: &'a Site,
    provider: &'a IdentityProvider,
    /// The id it names a provider by.
    connection: Option<String>,
    /// Where the visitor wants to go.
    return_to: Option<ReturnTo>,
    /// The route that is.
    route: Option<Arc<Route>>,
}

impl<'a> LoginRequest<'a> {
    fn read(sign_in: &'a SignIn, head: &'a Parts) -> Result<Self, RefusalReason> {
        let query = Query::of(head.uri.query().unwrap_or_default());
        let site = sign_in.sites.of(&head.headers);
        let iss = query.get("iss");
        let return_to = query
            .get("returnTo")
            .or_else(|| query.get("target_link_uri"))
            .and_then(|raw| site.return_to(&raw));
        let route = return_to.as_ref().and_then(|to| sign_in.routes.route_of(to));
        let connection = query.get(CONNECTION).filter(|_| sign_in.providers.several());
        let named = ProviderHint {
            issuer: iss.as_deref(),
            connection: connection.as_deref(),
            by_route: route.as_deref().and_then(Route::connection),
        };
        let provider = sign_in.providers.choose(named, site, return_to.as_ref())?;
        Ok(Self {
            query,
            site,
            provider,
            connection,
            return_to,
            route,
        })
    }

    /// The same login, for a navigation.
    fn url(&self) -> String {
        let return_to = self.return_to.as_ref().map(ReturnTo::as_str);
        self.site.login_url(return_to, self.connection.as_deref())
    }

    /// What it adds to the authorization request. None where the visitor wants a silent sign-in and the person signed out here,
    /// or one found nobody a moment ago: another one would go round in circles.
    fn wanted(&self, sign_in: &SignIn, head: &Parts) -> Option<LoginParameters> {
        let mut wanted = LoginParameters::of(
            &self.query.0,
            &sign_in.settings.login_parameters,
            self.route.as_deref(),
            self.provider.relying_party.settings().organization.is_some(),
        );
        wanted.must_ask = sign_in.pending.has_left(&head.headers, &self.provider.id);
        let finds_nobody = wanted.must_ask || sign_in.pending.was_silent(&head.headers, &self.provider.id);
        if wanted.silent() && finds_nobody {
            if wanted.silent_by_visitor {
                return None;
            }
            wanted.ask_after_all();
        }
        Some(wanted)
    }
}

/// Sends the browser to the provider, with a transaction for the way back.
async fn begin(
    sign_in: &SignIn,
    login: LoginRequest<'_>,
    wanted: &LoginParameters,
    (head, session): (&Parts, Option<SessionId>),
) -> Result<Response, HttpError> {
    let LoginRequest { site, provider, .. } = login;
    let transaction = transaction(sign_in, provider, wanted, login.return_to, session)?;
    let callback = site.at(&provider.callback_path);
    let redirect_uri = RedirectUrl::new(callback).map_err(internal)?;
    let url = match authorization_url(sign_in, provider, &redirect_uri, &transaction, wanted).await {
        Ok(url) => url,
        Err(error) => {
            let error = SignInError::from(error);
            let answer = error.answer(SignInStep::Login);
            // The provider answered, and says that it does not take what was pushed to it.
            let outcome = match error.reason {
                RefusalReason::RequestRefused => "rejected",
                _ => "unavailable",
            };
            sign_in.metrics.login(outcome, &provider.id);
            return Ok(sign_in.reject(SignInStep::Login, Some(provider), head, error, answer));
        }
    };
    let now_ms = transaction.started_at_ms;
    let cookies = sign_in
        .pending
        .add(&head.headers, &transaction, provider.response_mode(), now_ms);
    let mut response = to_provider(&url)?;
    // The transaction's own cookie comes last and has to be there; older ones go while the head has room.
    let mut cookies = cookies.map_err(internal)?;
    let own = cookies.pop();
    response
        .headers_mut()
        .extend(own.map(|own| (header::SET_COOKIE, own)));
    answer_head::append_what_fits(response.headers_mut(), &header::SET_COOKIE, cookies);
    Ok(response)
}

/// The transaction of a sign-in with these parameters.
fn transaction(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    wanted: &LoginParameters,
    return_to: Option<ReturnTo>,
    session: Option<SessionId>,
) -> Result<Transaction, HttpError> {
    let issuer = IssuerHash::of(provider.issuer());
    let begun = sign_in.pending.begin(issuer, return_to, sign_in.clock.now_ms());
    let mut transaction = begun.map_err(internal)?;
    transaction.max_age = wanted
        .max_age
        .or(provider.relying_party.settings().configured_max_age());
    transaction.acr_values = wanted.acr_values().map(str::to_owned);
    transaction.silent = wanted.silent();
    transaction.organization.clone_from(&wanted.organization);
    if provider.response_mode() == ResponseMode::FormPost || sign_in.strict_cookie {
        transaction.session = session;
    }
    Ok(transaction)
}

/// Where the provider signs people in for this transaction.
async fn authorization_url(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    redirect_uri: &RedirectUrl,
    transaction: &Transaction,
    wanted: &LoginParameters,
) -> Result<Url, ProviderError> {
    let authorization = AuthorizationRequest {
        redirect_uri,
        state: &transaction.state,
        nonce: &transaction.nonce,
        verifier: &transaction.verifier,
        extra: &wanted.extra,
        max_age: wanted.max_age,
        must_ask: wanted.must_ask,
        now: sign_in.clock.now_ms() / 1000,
    };
    provider.relying_party.authorization_url(&authorization).await
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

/// A third party's form (OpenID Connect Core, section 4): the same as a visit of our own, since the browser leaves Lax
/// cookies out of a POST from elsewhere, by which pending sign-ins are bounded and the session before is known.
async fn third_party(sign_in: &SignIn, head: &Parts, body: Body) -> Result<Response, HttpError> {
    if request::is_script(&head.headers) {
        return Err(NOT_A_VISIT);
    }
    if !super::is_form(&head.headers) {
        return Err(HttpError::MethodNotAllowed(VISITS.into()));
    }
    let form = super::form(body, MAX_FORM_BYTES).await?;
    if request::first_parameter(&form, "iss").is_none() {
        return Err(HttpError::MethodNotAllowed(VISITS.into()));
    }
    let mut here = format!("{}?", sign_in.settings.login_path);
    for name in THIRD_PARTY_PARAMETERS {
        let Some(value) = request::first_parameter(&form, name) else {
            continue;
        };
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let pair = query.append_pair(name, &value).finish();
        // What has no room in the head is longer than anything the login route takes.
        if here.len() + pair.len() < answer_head::room(&HeaderMap::new()) {
            here = format!("{here}{pair}&");
        }
    }
    let location = HeaderValue::try_from(here.trim_end_matches('&')).map_err(internal)?;
    const NO_STORE: (HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location), NO_STORE]).into_response())
}

/// A page that comes here again by itself, where another site's page sent the visitor and the strict session cookie was left
/// out for that: only then is it known which session the sign-in replaces.
fn once_more(sign_in: &SignIn, head: &Parts, session: Option<&SessionId>) -> Option<Response> {
    if !sign_in.strict_cookie || session.is_some() || request::site(&head.headers) == FetchSite::Own {
        return None;
    }
    Some(
        sign_in
            .pages
            .onward(Language::of(&head.headers), &here(sign_in, head)?),
    )
}

/// The absolute URL of this request, where it fits into the head of a page.
fn here(sign_in: &SignIn, head: &Parts) -> Option<String> {
    let base_url = sign_in.sites.of(&head.headers).base_url();
    let here = base_url.join(head.uri.path_and_query()?.as_str()).ok()?;
    (here.as_str().len() <= MAX_ONCE_MORE_BYTES).then(|| here.into())
}
