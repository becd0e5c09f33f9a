//! The callback route: the provider's answer becomes a session, or is refused.
//!
//! Invariants: the checks run in the order of the contract and the first that fails ends it; a bad message causes no call to the
//! provider; only the transaction that the state names is used up; a refusal creates nothing, changes no session and
//! leaves other transactions alone. Deliberately absent: any word of the provider in the answer.

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use oidc::{Expected, check_issuer_parameter};

use crate::edge::Edge;
use crate::errors::Failure;
use crate::observe::Handle;
use crate::request;
use crate::return_to::ReturnTo;
use crate::sign_in::answer::{Answer, read_answer};
use crate::sign_in::landing;
use crate::sign_in::new_session::create_request;
use crate::sign_in::pending::NotPending;
use crate::sign_in::rejected::{Reason, Rejected};
use crate::sign_in::transaction::Transaction;

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
        Ok(response) => Ok(response),
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

    let code = match check_message(edge, answer).await {
        Ok(code) => code,
        Err(Reason::InteractionNeeded) if transaction.silent => {
            check_promised_issuer(edge, answer).await.map_err(rejected)?;
            return Ok(anonymous(edge, head, &transaction));
        }
        Err(reason) => return Err(rejected(reason).into()),
    };
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
        acr_values: transaction.acr_values.as_deref(),
        organization: transaction.organization.as_deref(),
    };
    let id_token = edge
        .provider
        .validate_id_token(&tokens.id_token, &expected, edge.clock.now_ms() / 1000)
        .await
        .map_err(|error| rejected(Reason::IdToken(error)))?;
    let userinfo = if edge.settings.userinfo_at_login {
        let now = edge.clock.now_ms() / 1000;
        let userinfo = edge
            .provider
            .userinfo(&tokens.token_type, &tokens.access_token, &id_token.sub, now)
            .await;
        Some(userinfo.map_err(|error| rejected(Reason::Userinfo(error)))?)
    } else {
        None
    };

    let request = create_request(
        edge,
        head,
        transaction.session.clone(),
        tokens,
        id_token,
        userinfo,
    )
    .map_err(|failure| {
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

    let cookies = [
        edge.sessions.cookie_for(&id, &session),
        edge.pending.clear(&transaction.state),
    ];
    let mut response = landing(edge, &head.method, return_to.as_ref(), cookies);
    edge.metrics.login("success");
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
    match answer.iss.as_slice() {
        [] => {}
        [iss] if *iss == edge.settings.provider.issuer => {}
        _ => return Err(Reason::Issuer),
    }
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
    check_promised_issuer(edge, answer).await?;
    Ok(code)
}

/// Whether `iss` is there if the provider promises it (RFC 9207, section 2.4).
async fn check_promised_issuer(edge: &Edge, answer: &Answer) -> Result<(), Reason> {
    let metadata = edge.provider.metadata().await.map_err(Reason::Metadata)?;
    let iss = answer.iss.first().map(String::as_str);
    check_issuer_parameter(&metadata, iss).map_err(|_wrong| Reason::Issuer)
}

/// A silent sign-in found nobody: the visitor goes on as nobody, and the next attempt is put off, so that nothing goes round
/// in circles.
fn anonymous(edge: &Edge, head: &Parts, transaction: &Transaction) -> Response {
    tracing::info!("a silent sign-in found nobody");
    edge.metrics.login("anonymous");
    let cookies = [edge.pending.clear(&transaction.state), edge.pending.mark_silent()];
    landing(edge, &head.method, transaction.return_to.as_ref(), cookies)
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
