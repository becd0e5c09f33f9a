//! Who may pass, and what the others are told.
//!
//! Invariants: a guarded route never answers from its upstream before its guard has said yes; a session service that
//! cannot be reached is 503 and changes no cookie; nothing but the session decides, no header ever skips a guard.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, header};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde_json::Value;
use session_proto::v1::session::State;
use session_proto::v1::{ErrorReason, Session};
use session_proto::{claims, timestamp};

use super::route_table::{Asks, Guard, Route};
use super::upgrade;
use crate::edge::Edge;
use crate::errors::Failure;
use crate::protect::csrf::{Provenance, provenance};
use crate::request::{self, is_prefetch, is_script};
use crate::sessions::CurrentSession;

/// What a request that may pass passes with.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    /// The session, where the route is guarded.
    pub current: Option<CurrentSession>,
    /// The access token, where the route attaches it.
    pub access_token: Option<String>,
}

/// What is missing.
enum Missing {
    /// A session, or one that still does what is asked.
    Session,
    /// A sign-in that is young enough.
    FreshSignIn(u64),
    /// A sign-in of one of these classes.
    Class(String),
    /// A usable access token, for this reason.
    Token(ErrorReason),
    /// Something signing in again does not bring.
    Right(Failure),
}

impl Missing {
    /// What is still missing right after a sign-in would be missing after the next one: asking again would go round in
    /// circles.
    fn after_sign_in(self) -> Self {
        match self {
            Self::FreshSignIn(_) | Self::Class(_) => {
                let words = "Signing in did not give what this address asks for.";
                Self::Right(Failure::Forbidden {
                    code: "insufficient_user_authentication",
                    words,
                })
            }
            Self::Session | Self::Token(_) | Self::Right(_) => self,
        }
    }
}

/// A sign-in is fresh for so long: time for a redirect or two.
const FRESH_MS: u64 = 15_000;

fn is_fresh(session: &Session, now_ms: u64) -> bool {
    now_ms.saturating_sub(session.created_at.as_ref().map_or(0, timestamp::to_ms)) < FRESH_MS
}

/// Lets a request pass, or answers it.
pub(super) async fn pass(edge: &Edge, route: &Route, request: &Parts<'_>) -> Result<Passed, Response> {
    if route.guard == Guard::Open || is_preflight(request.method, request.headers) {
        return Ok(Passed::default());
    }
    if changes_something(request)
        && provenance(request.headers, &edge.settings.base_url) == Provenance::Foreign
    {
        return Err(Failure::Csrf.into_response());
    }
    let device = edge.device(request.headers, request.peer);
    let current = edge
        .sessions
        .current(request.headers, Some(device))
        .await
        .map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a guard cannot ask for the session"
            );
            Failure::SessionServiceDown.into_response()
        })?;
    let Some(current) = current else {
        return Err(refuse(edge, route, request, Missing::Session));
    };
    let checked = check(&current.session, &route.asks, edge.clock.now_ms());
    checked.map_err(|missing| {
        let missing = if is_fresh(&current.session, edge.clock.now_ms()) {
            missing.after_sign_in()
        } else {
            missing
        };
        refuse(edge, route, request, missing)
    })?;
    let access_token = if route.asks.token() {
        let token = token(edge, &current, route).await;
        Some(token.map_err(|missing| refuse(edge, route, request, missing))?)
    } else {
        None
    };
    Ok(Passed {
        access_token: access_token.filter(|_| route.asks.access_token),
        current: Some(current),
    })
}

/// The parts of a request a guard looks at.
pub(super) struct Parts<'a> {
    /// Method.
    pub method: &'a Method,
    /// Path and query as they came.
    pub uri: &'a Uri,
    /// Headers as they came.
    pub headers: &'a HeaderMap,
    /// Who opened the connection.
    pub peer: IpAddr,
}

/// A browser's question whether a script of another origin may ask; it carries no credentials (Fetch, section 4.8).
fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether a page of another origin could do harm with the cookie a browser adds: by a method that changes something, or
/// by a WebSocket, which no other rule of browsers stops.
fn changes_something(request: &Parts<'_>) -> bool {
    !request.method.is_safe() || upgrade::wanted(request.headers).is_some()
}

fn check(session: &Session, asks: &Asks, now_ms: u64) -> Result<(), Missing> {
    if let Some(max_age_secs) = asks.max_age_secs {
        let at_ms = session.authenticated_at.as_ref().map_or(0, timestamp::to_ms);
        if now_ms.saturating_sub(at_ms) > max_age_secs.saturating_mul(1000) {
            return Err(Missing::FreshSignIn(max_age_secs));
        }
    }
    let user = session.user.as_ref().map(claims::from_struct).unwrap_or_default();
    let text = |name: &str| user.get(name).and_then(Value::as_str);
    if !asks.acr.is_empty() && !text("acr").is_some_and(|acr| asks.acr.iter().any(|asked| asked == acr)) {
        return Err(Missing::Class(asks.acr.join(" ")));
    }
    let in_organization = |asked: &String| {
        if asked.starts_with("org_") {
            text("org_id") == Some(asked)
        } else {
            text("org_name").is_some_and(|name| name.to_lowercase() == asked.to_lowercase())
        }
    };
    if !asks.organization.as_ref().is_none_or(in_organization) {
        let words = "This address is for members of another organization.";
        return Err(Missing::Right(Failure::Forbidden {
            code: "wrong_organization",
            words,
        }));
    }
    let is = |value: &Value, asked: &String| value.as_str() == Some(asked);
    let holds = |(name, asked): (&String, &String)| match user.get(name) {
        Some(Value::Array(values)) => values.iter().any(|value| is(value, asked)),
        Some(value) => is(value, asked),
        None => false,
    };
    if !asks.claims.iter().all(holds) {
        let words = "Your account does not have what this address asks for.";
        return Err(Missing::Right(Failure::Forbidden {
            code: "insufficient_claims",
            words,
        }));
    }
    Ok(())
}

async fn token(edge: &Edge, current: &CurrentSession, route: &Route) -> Result<String, Missing> {
    if current.session.state() == State::NeedsSignIn {
        return Err(Missing::Token(ErrorReason::ErrFailedRefreshGrant));
    }
    let error = match edge
        .sessions
        .access_token(&current.id, route.asks.scopes.clone())
        .await
    {
        Ok(granted) => return Ok(granted.access_token),
        Err(error) => error,
    };
    if error.is_unavailable() {
        tracing::warn!(%error, "a guard cannot ask for the access token");
        let failure = if error.reason == ErrorReason::ErrProviderUnavailable {
            Failure::Session {
                reason: error.reason,
                scopes: None,
                handler: None,
            }
        } else {
            Failure::SessionServiceDown
        };
        return Err(Missing::Right(failure));
    }
    Err(match error.reason {
        ErrorReason::ErrInsufficientScope => {
            let scopes = error.metadata.get("scopes").cloned();
            Missing::Right(Failure::Session {
                reason: error.reason,
                scopes,
                handler: None,
            })
        }
        // It ended just now.
        ErrorReason::ErrMissingSession => Missing::Session,
        // Missing, expired, refused: signing in again brings one.
        reason => Missing::Token(reason),
    })
}

/// Tells what is missing: people are sent to sign in where that helps, programs get an answer they can read.
fn refuse(edge: &Edge, route: &Route, request: &Parts<'_>, missing: Missing) -> Response {
    if let Missing::Right(failure) = missing {
        return failure.into_response();
    }
    if route.guard == Guard::Page {
        if is_prefetch(request.headers) {
            return no_store(StatusCode::NO_CONTENT.into_response());
        }
        if navigates(request) {
            return no_store(Redirect::temporary(&sign_in(edge, request.uri, &missing)).into_response());
        }
    }
    no_store(match missing {
        Missing::Token(reason) => Failure::Session {
            reason,
            scopes: None,
            handler: None,
        }
        .into_response(),
        Missing::Session | Missing::FreshSignIn(_) | Missing::Class(_) | Missing::Right(_) => {
            Failure::NotAuthenticated.into_response()
        }
    })
}

/// Anything else than a navigation would lose what it carries, or could not follow to another origin.
fn navigates(request: &Parts<'_>) -> bool {
    let mode = request::text(request.headers, "sec-fetch-mode").is_none_or(|mode| mode == "navigate");
    mode && matches!(*request.method, Method::GET | Method::HEAD) && !is_script(request.headers)
}

/// The login route, with the way back and what the sign-in has to bring.
fn sign_in(edge: &Edge, uri: &Uri, missing: &Missing) -> String {
    let back = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("returnTo", back);
    match missing {
        Missing::FreshSignIn(max_age_secs) => {
            query.append_pair("max_age", &max_age_secs.to_string());
        }
        Missing::Class(acr_values) => {
            query.append_pair("acr_values", acr_values);
        }
        Missing::Session | Missing::Token(_) | Missing::Right(_) => {}
    }
    format!("{}?{}", edge.settings.login_path, query.finish())
}

fn no_store(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW_MS: u64 = 1_000_000;

    fn session(user: Value) -> Session {
        Session {
            user: user.as_object().map(claims::to_struct),
            authenticated_at: Some(timestamp::from_ms(NOW_MS - 60_000)),
            ..Session::default()
        }
    }

    fn passes(user: Value, asks: Asks) -> bool {
        check(&session(user), &asks, NOW_MS).is_ok()
    }

    #[test]
    fn a_sign_in_may_be_as_old_as_asked_and_no_older() {
        assert!(passes(
            json!({}),
            Asks {
                max_age_secs: Some(60),
                ..Asks::default()
            }
        ));
        assert!(!passes(
            json!({}),
            Asks {
                max_age_secs: Some(59),
                ..Asks::default()
            }
        ));
    }

    #[test]
    fn one_of_the_classes_asked_for_is_enough() {
        let asks = || Asks {
            acr: vec!["gold".into(), "silver".into()],
            ..Asks::default()
        };
        assert!(passes(json!({"acr": "silver"}), asks()));
        assert!(!passes(json!({"acr": "bronze"}), asks()));
        assert!(!passes(json!({}), asks()));
    }

    #[test]
    fn an_organization_is_its_id_exactly_or_its_name_in_any_case() {
        let asks = |organization: &str| Asks {
            organization: Some(organization.to_owned()),
            ..Asks::default()
        };
        assert!(passes(
            json!({"org_id": "org_1", "org_name": "Acme"}),
            asks("org_1")
        ));
        assert!(!passes(
            json!({"org_id": "ORG_1", "org_name": "org_1"}),
            asks("org_1")
        ));
        assert!(passes(json!({"org_name": "Acme"}), asks("acme")));
        assert!(!passes(json!({}), asks("acme")));
    }

    #[test]
    fn a_claim_has_the_value_or_lists_it() {
        let asks = || Asks {
            claims: [("groups".to_owned(), "admin".to_owned())].into(),
            ..Asks::default()
        };
        assert!(passes(json!({"groups": "admin"}), asks()));
        assert!(passes(json!({"groups": ["staff", "admin"]}), asks()));
        assert!(!passes(json!({"groups": ["administrators"]}), asks()));
        assert!(!passes(json!({}), asks()));
    }
}
