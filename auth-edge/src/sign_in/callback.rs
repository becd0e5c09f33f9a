//! The callback route: the provider's answer becomes a session, or is refused.
//!
//! Invariants: the checks run in the order of the contract and the first that fails ends it; a bad message causes no call to the
//! provider; only the transaction that the state names is used up; a refusal creates nothing, changes no session and
//! leaves other transactions alone. Deliberately absent: any word of the provider in the answer.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::{Expected, IdToken, check_issuer_parameter};
use session_proto::v1::{CreateSessionRequest, TokenSet};
use session_proto::{claims, timestamp};

use crate::edge::Edge;
use crate::errors::Failure;
use crate::keys;
use crate::observe::Handle;
use crate::request;
use crate::return_to::ReturnTo;
use crate::sign_in::login::internal;
use crate::sign_in::pending::NotPending;
use crate::sign_in::rejected::{Reason, Rejected};
use crate::sign_in::transaction::Transaction;
use crate::sign_in::user::user;

/// Largest posted answer, in bytes: a code, a state and an issuer are far smaller.
const MAX_FORM_BYTES: usize = 64 * 1024;

/// What the provider sent.
#[derive(Debug, Default)]
struct Answer {
    state: Values,
    code: Values,
    iss: Values,
    error: Values,
}

/// The values of one parameter.
type Values = Vec<String>;

/// What a refusal is: of the provider's answer, or because our own session service is down.
enum Ended {
    Rejected(Box<Rejected>),
    SessionServiceDown(Option<ReturnTo>),
}

impl From<Rejected> for Ended {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(Box::new(rejected))
    }
}

/// Receives the provider's answer: in the query, or as a posted form when that is configured.
pub async fn handle(State(edge): State<Edge>, request: Request) -> Result<Response, Failure> {
    let (head, body) = request.into_parts();
    let address = edge
        .trusted_proxies
        .client_address(request::peer(&head.extensions), &head.headers);
    edge.callback_limit
        .check(address, edge.clock.now_ms())
        .map_err(|too_many| Failure::RateLimited {
            retry_after_secs: too_many.retry_after_secs,
        })?;

    let answer = match read_answer(&head, body).await {
        Ok(answer) => answer,
        Err(reason) => return Ok(refuse(&edge, None, &reason.into())),
    };
    match finish(&edge, &head, &answer).await {
        Ok(response) => {
            edge.metrics.login("success");
            Ok(response)
        }
        Err(Ended::Rejected(rejected)) => {
            Ok(refuse(&edge, answer.state.first().map(String::as_str), &rejected))
        }
        Err(Ended::SessionServiceDown(return_to)) => {
            edge.metrics.login("unavailable");
            let try_again = edge.settings.login_url(return_to.as_ref().map(ReturnTo::as_str));
            Err(Failure::CallbackUnavailable { try_again })
        }
    }
}

/// The whole way from the answer to the session, in the order of the contract.
async fn finish(edge: &Edge, head: &Parts, answer: &Answer) -> Result<Response, Ended> {
    let transaction = find_transaction(edge, &head.headers, answer).map_err(Ended::Rejected)?;
    let return_to = transaction.return_to.clone();
    let rejected = |reason: Reason| Rejected {
        reason,
        return_to: transaction.return_to.clone(),
        consumed: true,
    };

    let code = check_message(edge, answer).await.map_err(rejected)?;
    let now_ms = edge.clock.now_ms();
    let tokens = edge
        .provider
        .exchange_code(
            code,
            &transaction.verifier,
            &edge.settings.redirect_uri(),
            now_ms / 1000,
        )
        .await
        .map_err(|error| rejected(Reason::Exchange(error)))?;
    let expected = Expected {
        nonce: &transaction.nonce,
        access_token: Some(&tokens.access_token),
        max_age: transaction.max_age,
        acr_values: None,
        organization: transaction.organization.as_deref(),
    };
    let id_token = edge
        .provider
        .validate_id_token(&tokens.id_token, &expected, edge.clock.now_ms() / 1000)
        .await
        .map_err(|error| rejected(Reason::IdToken(error)))?;
    let userinfo = if edge.settings.userinfo_at_login {
        let userinfo = edge.provider.userinfo(&tokens.access_token, &id_token.sub).await;
        Some(userinfo.map_err(|error| rejected(Reason::Userinfo(error)))?)
    } else {
        None
    };

    let request = create_request(edge, head, tokens, id_token, userinfo).map_err(|failure| {
        tracing::error!(?failure, "no request ID could be made");
        Ended::SessionServiceDown(return_to.clone())
    })?;
    let (id, session) = edge.sessions.create(request).await.map_err(|error| {
        if error.is_unavailable() {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "no session could be created"
            );
            Ended::SessionServiceDown(return_to.clone())
        } else {
            rejected(Reason::Session(error)).into()
        }
    })?;

    let target = return_to.unwrap_or_else(|| ReturnTo::base(&edge.settings.base_url));
    let status = if head.method == Method::POST {
        StatusCode::SEE_OTHER
    } else {
        StatusCode::FOUND
    };
    let mut response = status.into_response();
    if let Ok(location) = HeaderValue::try_from(target.as_str()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    let cookies = [
        edge.sessions.cookie_for(&id, &session),
        edge.pending.clear(&transaction.state),
    ];
    for cookie in cookies.into_iter().flatten() {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
        .headers_mut()
        .insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Handle(session.handle));
    Ok(response)
}

/// The transaction: present, sealed by us, unexpired, its state equal, and not taken before.
fn find_transaction(edge: &Edge, headers: &HeaderMap, answer: &Answer) -> Result<Transaction, Box<Rejected>> {
    let [state] = answer.state.as_slice() else {
        return Err(Box::new(Reason::State.into()));
    };
    let now_ms = edge.clock.now_ms();
    let transaction = edge.pending.find(headers, state, now_ms).map_err(|not_pending| {
        Box::new(match not_pending {
            NotPending::Unknown => Reason::UnknownTransaction.into(),
            NotPending::Expired(old) => Rejected {
                reason: Reason::ExpiredTransaction,
                return_to: old.return_to,
                consumed: true,
            },
        })
    })?;
    if edge.redeemed.take(state, now_ms) {
        Ok(transaction)
    } else {
        let return_to = transaction.return_to;
        Err(Box::new(Rejected {
            reason: Reason::AlreadyUsed,
            return_to,
            consumed: true,
        }))
    }
}

/// `iss`, then `error`, then exactly one `code`. The provider's metadata is asked for only if all else is well.
async fn check_message<'a>(edge: &Edge, answer: &'a Answer) -> Result<&'a str, Reason> {
    let iss = match answer.iss.as_slice() {
        [] => None,
        [iss] if *iss == edge.settings.provider.issuer => Some(iss.as_str()),
        _ => return Err(Reason::Issuer),
    };
    if let Some(error) = answer.error.first() {
        return Err(match error.as_str() {
            "access_denied" => Reason::Denied,
            "login_required" | "interaction_required" | "consent_required" | "account_selection_required" => {
                Reason::InteractionNeeded
            }
            _ => Reason::ProviderError,
        });
    }
    let [code] = answer.code.as_slice() else {
        return Err(Reason::Code);
    };
    if code.is_empty() {
        return Err(Reason::Code);
    }
    let metadata = edge.provider.metadata().await.map_err(Reason::Metadata)?;
    check_issuer_parameter(&metadata, iss).map_err(|_wrong| Reason::Issuer)?;
    Ok(code)
}

fn create_request(
    edge: &Edge,
    head: &Parts,
    tokens: oidc::TokenSet,
    id_token: IdToken,
    userinfo: Option<serde_json::Map<String, serde_json::Value>>,
) -> Result<CreateSessionRequest, Failure> {
    let request_id = uuid(keys::random::<16>().map_err(internal)?);
    let seconds = |secs: u64| timestamp::from_ms(secs.saturating_mul(1000));
    let replaces_session_id = edge
        .cookies
        .read(&head.headers)
        .map(|id| id.expose().to_owned())
        .unwrap_or_default();
    Ok(CreateSessionRequest {
        issuer: id_token.iss,
        user: Some(claims::to_struct(&user(
            id_token.claims,
            userinfo,
            &edge.settings.claim_filter,
        ))),
        tokens: Some(TokenSet {
            access_token: tokens.access_token,
            token_type: tokens.token_type,
            scope: tokens.scope,
            expires_at: Some(seconds(tokens.expires_at)),
            refresh_token: tokens.refresh_token.unwrap_or_default(),
            id_token: if edge.settings.store_id_token {
                tokens.id_token
            } else {
                String::new()
            },
        }),
        provider_sid: id_token.sid.unwrap_or_default(),
        authenticated_at: id_token.auth_time.map(seconds),
        device: Some(edge.device(&head.headers, request::peer(&head.extensions))),
        replaces_session_id,
        request_id,
        not_after: id_token.session_expiry.map(seconds),
    })
}

/// A random UUID (RFC 9562, version 4) of these bytes.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

async fn read_answer(head: &Parts, body: Body) -> Result<Answer, Reason> {
    if head.method != Method::POST {
        return Ok(parse(head.uri.query().unwrap_or_default()));
    }
    if !super::is_form(&head.headers) {
        return Err(Reason::Body);
    }
    let form = super::form(body, MAX_FORM_BYTES)
        .await
        .map_err(|_unreadable| Reason::Body)?;
    Ok(parse(&form))
}

fn parse(encoded: &str) -> Answer {
    let mut answer = Answer::default();
    for (name, value) in url::form_urlencoded::parse(encoded.as_bytes()) {
        let values = match &*name {
            "state" => &mut answer.state,
            "code" => &mut answer.code,
            "iss" => &mut answer.iss,
            "error" => &mut answer.error,
            _ => continue,
        };
        // Two are enough to know that there is more than one.
        if values.len() < 2 {
            values.push(value.into_owned());
        }
    }
    answer
}

fn refuse(edge: &Edge, state: Option<&str>, rejected: &Rejected) -> Response {
    let label = rejected.reason.label();
    tracing::warn!(
        reason = label,
        error = &rejected.reason as &dyn std::error::Error,
        "callback refused"
    );
    edge.metrics.login("rejected");
    edge.metrics.callback_rejection(label);
    let try_again = edge
        .settings
        .login_url(rejected.return_to.as_ref().map(ReturnTo::as_str));
    let mut response = Failure::Callback {
        words: rejected.reason.words(),
        try_again,
    }
    .into_response();
    if rejected.consumed
        && let Some(cookie) = state.and_then(|state| edge.pending.clear(state))
    {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_parameters_are_seen_as_repeated() {
        let answer = parse("code=a&code=b&code=c&state=s&iss=i&other=x");
        assert_eq!(
            (
                answer.code.len(),
                answer.state.len(),
                answer.iss.len(),
                answer.error.len()
            ),
            (2, 1, 1, 0)
        );
    }

    #[test]
    fn a_uuid_has_version_and_variant() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
