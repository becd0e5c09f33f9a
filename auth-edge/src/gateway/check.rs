//! Forward auth: nginx `auth_request`, Traefik and Caddy ask whether a request may pass.
//!
//! Invariants
//! - Only a trusted proxy can describe the original request. Its description chooses the rule (`[[check]]`),
//!   the site of the session, and the return address.
//! - If there are rules, a request without a matching rule does not pass.
//! - The session, or an access token if the rule accepts one, decides whether the request passes.
//!
//! Only a proxy that checks a request receives the access token. A page's own script never does, neither here
//! nor through a proxy.

mod passed;
mod refused;
mod rule;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};

use self::rule::CheckRule;
use super::authorized::RequestCredentials;
use super::decision::{self, AskedRequest};
use super::{bearer, cross_site, guard};
use crate::gateway::Gateway;
use crate::http::errors::HttpError;
use crate::http::{no_store, request};
use crate::route_table::principal::Principal;
use crate::route_table::requirements::Requirements;
use crate::route_table::unmet_requirement::UnmetRequirement;
use crate::route_table::upstream_headers::IdentityHeaderNames;
use crate::route_table::{Guard, Route};
use crate::sessions::{CachedToken, CurrentSession, TokenFor};
use crate::values::forwarded::{self, OriginalRequest};
use crate::values::reserved::{ALIAS_CHECK_PATH, CHECK_PATH};

/// Response extension for callers inside this process: the answer's application headers besides the edge's own, and
/// what to remove from the client's request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplicationHeaders {
    /// Whether the application must not receive the client's own access token.
    pub(crate) hides_client_token: bool,
    /// Headers of this answer.
    pub(crate) headers: Vec<HeaderName>,
    /// Names no client may send.
    pub(crate) names: IdentityHeaderNames,
}

/// Answers a forward-auth check.
pub(crate) async fn handle(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (mut asking, _body) = request.into_parts();
    let original = original(&gateway, &asking);
    name_original_host(&gateway, &mut asking.headers, &original);
    let rule = match rule::find(&gateway, &asking.headers, &original) {
        Ok(rule) => rule,
        Err(failure) => return no_store(failure.into_response()),
    };
    let answer = answer_check(&gateway, &asking, &original, rule.as_ref()).await;
    let refused = |mut refused| {
        if rule.is_some_and(|rule| bearer::other_origins_may_read(&gateway, &rule.route, &asking.headers)) {
            bearer::let_other_origins_read(&mut refused);
        }
        refused
    };
    no_store(answer.unwrap_or_else(refused))
}

/// The request that a check is about, as described by a caller inside this process or by a trusted proxy.
fn original(gateway: &Gateway, asking: &Parts) -> OriginalRequest {
    let peer = request::peer(&asking.extensions);
    let inside = asking.extensions.get::<OriginalRequest>();
    let by_proxy = || gateway.trusted_proxies.original_request(peer, &asking.headers);
    inside.cloned().unwrap_or_else(by_proxy)
}

/// Writes the original host into `Host`, so that the site of that host provides the session.
fn name_original_host(gateway: &Gateway, headers: &mut HeaderMap, original: &OriginalRequest) {
    let parts = original.url.as_deref().and_then(forwarded::parts);
    if gateway.sites.has_hosts()
        && let Some((_, authority, _)) = parts
        && let Ok(host) = HeaderValue::try_from(authority)
    {
        headers.insert(header::HOST, host);
    }
}

/// The answer to a check: passed or rejected.
async fn answer_check(
    gateway: &Gateway,
    asking: &Parts,
    original: &OriginalRequest,
    rule: Option<&CheckRule>,
) -> Result<Response, Response> {
    let refused = |failure: HttpError| failure.into_response();
    let route = rule.map(|rule| &*rule.route);
    let pass = |authorized: &RequestCredentials, cookie| {
        passed::answer(gateway, is_from_inside(asking), rule, authorized, cookie)
    };
    if route.is_some_and(|route| route.guard == Guard::Open) {
        return pass(&RequestCredentials::default(), None).map_err(refused);
    }
    let client = (&asking.headers, request::peer(&asking.extensions));
    let without_rule;
    let requirements = match route {
        Some(route) => &route.requirements,
        None => {
            without_rule = Requirements {
                allow: gateway.routes.with(|table| table.allow.clone()),
                ..Requirements::default()
            };
            &without_rule
        }
    };
    guard::check_network(gateway, requirements, client).map_err(refused)?;
    if let Some(rule) = rule
        && let Some(required) = &rule.route.bearer
    {
        let presentation = bearer::Presentation {
            gateway,
            route: &rule.route,
            rule: required,
            client,
            method: original.method.as_ref().map_or("", Method::as_str),
            origin: &rule.origin,
            audience_origin: &rule.resource_origin,
            path: &rule.path,
            publisher: None,
        };
        if let Some(token) = bearer::authorize(&presentation).await? {
            let decided = decide(gateway, asking, original, rule, (&*token).into()).await;
            decided.map_err(refused)?;
            return pass(&RequestCredentials::by_token(token), None).map_err(refused);
        }
    }
    let url = original.url.as_deref().unwrap_or_default();
    if cross_site::is_checked_preflight(original.method.as_ref(), &asking.headers, url) {
        return pass(&RequestCredentials::default(), None).map_err(refused);
    }
    let missing = |session, missing| refused::refuse(gateway, (asking, original), route, session, missing);
    // If the request has a body, the cookie of the application's answer reaches the browser late.
    let is_late = gateway.sessions.rotation.is_some() && may_have_a_body(original);
    let rolls = route.is_none_or(|route| route.rolls);
    let current = guard::session(gateway, client, rolls, is_late)
        .await
        .map_err(refused)?;
    let current = current.ok_or_else(|| missing(None, UnmetRequirement::Session))?;
    let met = match route {
        Some(route) => guard::check_requirements(gateway, route, &asking.headers, &current)
            .await
            .map(drop),
        None => guard::check_sign_in(gateway, requirements, &asking.headers, &current),
    };
    met.map_err(|lacks| missing(Some(&current.session), lacks))?;
    if let Some(rule) = rule {
        let decided = decide(gateway, asking, original, rule, (&*current.session).into()).await;
        decided.map_err(|failure| missing(Some(&current.session), UnmetRequirement::NotBySignIn(failure)))?;
    }
    let access_token = if gateway.check_authorization && is_about_another_request(gateway, asking) {
        let token = access_token(gateway, asking, route, &current).await;
        let token = token.map_err(|lacks| match lacks {
            UnmetRequirement::NotBySignIn(failure) => refused(failure),
            lacks => missing(None, lacks),
        })?;
        Some(token)
    } else {
        None
    };
    let cookie = gateway.sessions.cookie_if_alive(&current).await;
    let authorized = RequestCredentials {
        current: Some(current),
        access_token,
        bearer: None,
    };
    pass(&authorized, cookie).map_err(refused)
}

/// Asks the decision point of the rule, if it has one.
async fn decide(
    gateway: &Gateway,
    asking: &Parts,
    original: &OriginalRequest,
    rule: &CheckRule,
    who: Principal<'_>,
) -> Result<(), HttpError> {
    let Some(decision) = &rule.route.requirements.decision else {
        return Ok(());
    };
    let peer = request::peer(&asking.extensions);
    let asked = AskedRequest {
        method: original.method.as_ref(),
        origin: &rule.origin,
        path: &rule.path,
        client: gateway.trusted_proxies.client_address(peer, &asking.headers),
    };
    Box::pin(decision::ask(gateway, (&rule.route, decision), who, asked)).await
}

/// The access token of the answer: for the rule's API, else for the API the proxy configures.
async fn access_token(
    gateway: &Gateway,
    asking: &Parts,
    route: Option<&Route>,
    current: &CurrentSession,
) -> Result<Arc<CachedToken>, UnmetRequirement> {
    let query = asking.uri.query().unwrap_or_default();
    let text = |name| request::first_parameter(query, name).unwrap_or_default();
    let (scopes, audience, resource) = (text("scope"), text("audience"), text("resource"));
    let requested = TokenFor {
        scopes: scopes.split_ascii_whitespace().map(str::to_owned).collect(),
        audience,
        resource,
    };
    let by_rule = route.map(|route| &route.requirements.token);
    let wanted = by_rule.filter(|token| token.names_api());
    match guard::token(gateway, current, wanted.unwrap_or(&requested)).await {
        // A bound token (RFC 9449) is useless to the proxy. Sessions from before `OIDC_DPOP=off` have one.
        Ok(granted) if granted.is_bound() => Err(UnmetRequirement::Session),
        Err(UnmetRequirement::Token(_)) => Err(UnmetRequirement::Session),
        other => other,
    }
}

/// Whether the caller is inside this process, such as the Envoy service.
fn is_from_inside(asking: &Parts) -> bool {
    asking.extensions.get::<OriginalRequest>().is_some()
}

/// Whether the check is about another request: the caller is inside this process, or a trusted proxy that
/// names an address. A browser's own request for this route through a trusted proxy is not a check.
fn is_about_another_request(gateway: &Gateway, asking: &Parts) -> bool {
    if is_from_inside(asking) {
        return true;
    }
    let about = gateway
        .trusted_proxies
        .asked_about(request::peer(&asking.extensions), &asking.headers);
    let path = about.and_then(|about| about.split(|byte| *byte == b'?').next());
    let is_check = |path: &[u8]| {
        [CHECK_PATH, ALIAS_CHECK_PATH]
            .iter()
            .any(|own| path.ends_with(own.as_bytes()))
    };
    path.is_some_and(|path| !is_check(path))
}

/// Whether the original request may have a body: yes if the proxy does not name its method.
fn may_have_a_body(original: &OriginalRequest) -> bool {
    !matches!(
        original.method,
        Some(Method::GET | Method::HEAD | Method::OPTIONS)
    )
}
