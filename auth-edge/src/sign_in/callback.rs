//! The callback route: the provider's answer becomes a session, or is refused.
//!
//! Invariants: the checks run in the order of the contract and the first that fails ends it; a bad message causes no call to the
//! provider; each provider has a callback of its own, and an answer to a sign-in begun at another one is worth nothing; only the
//! transaction that the state names is used up; a code is redeemed once over all edges; a refusal creates nothing, changes no session and
//! leaves other transactions alone. Deliberately absent: any word of the provider in the answer.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use oidc::{IdTokenError, RelyingParty, check_issuer_parameter};

use super::lacking;
use crate::http::errors::HttpError;
use crate::http::observe::SessionHandle;
use crate::http::request;
use crate::http::response::no_content;
use crate::providers::IdentityProvider;
use crate::providers::sites::Site;
use crate::sessions::CachedSession;
use crate::sign_in::SignIn;
use crate::sign_in::authorization_response::{self, AuthorizationResponse};
use crate::sign_in::pending::NotPending;
use crate::sign_in::redemption::{NotRedeemed, Redeemed, Redemption};
use crate::sign_in::rejected::{Reason, Rejected};
use crate::sign_in::transaction::Transaction;
use crate::sign_in::{NOT_A_VISIT, landing};
use crate::values::return_to::ReturnTo;

/// Longest code taken to the provider, in bytes: those that hold a whole encrypted token stay below half of it.
const MAX_CODE_BYTES: usize = 4096;

/// What a refusal is: of the provider's answer, or because our own session service is down.
enum CallbackError {
    Rejected(Box<Rejected>),
    SessionServiceDown(Option<ReturnTo>),
}

impl From<Rejected> for CallbackError {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(Box::new(rejected))
    }
}

/// Receives the provider's answer: in the query, or as a posted form when that is configured.
/// `at` is the index of the provider whose callback this is.
pub(crate) async fn handle(sign_in: Arc<SignIn>, at: usize, request: Request) -> Result<Response, HttpError> {
    let provider = sign_in.providers.all().get(at).ok_or(HttpError::NotFound)?;
    let (head, body) = request.into_parts();
    // Before anything is counted or read: another site's page must not use up its visitor's share, or their sign-in.
    if request::is_prefetch(&head.headers) {
        return Ok(no_content());
    }
    if !request::is_navigation(&head.headers) {
        return Err(NOT_A_VISIT);
    }
    let address = sign_in
        .devices
        .trusted_proxies
        .client_address(request::peer(&head.extensions), &head.headers);
    sign_in
        .callback_limit
        .check(address, sign_in.clock.now_ms())
        .map_err(|too_many| HttpError::RateLimited {
            retry_after_secs: too_many.retry_after_secs,
        })?;

    let answer = match authorization_response::read(&head, body).await {
        Ok(answer) => answer,
        Err(reason) => return Ok(refuse(&sign_in, provider, &head.headers, None, &reason.into())),
    };
    let site = sign_in.sites.of(&head.headers);
    let context = CallbackContext {
        sign_in: &sign_in,
        provider,
        at,
        site,
        head: &head,
    };
    let may_answer = site.owner().is_none_or(|owner| owner.provider == at);
    match finish(&context, &answer, may_answer).await {
        Ok(response) => Ok(response),
        Err(CallbackError::Rejected(rejected)) => {
            let state = answer.state.first().map(String::as_str);
            Ok(refuse(&sign_in, provider, &head.headers, state, &rejected))
        }
        Err(CallbackError::SessionServiceDown(return_to)) => {
            sign_in.metrics.login("unavailable", &provider.id);
            let return_to = return_to.as_ref().map(ReturnTo::as_str);
            let try_again = site.login_url(return_to, sign_in.providers.connection_of(provider.issuer()));
            Err(HttpError::CallbackUnavailable { try_again })
        }
    }
}

/// What the callback of a request is handled with.
struct CallbackContext<'a> {
    sign_in: &'a Arc<SignIn>,
    provider: &'a IdentityProvider,
    /// Its index.
    at: usize,
    site: &'a Site,
    head: &'a Parts,
}

/// From the answer to the session, in the order of the contract.
async fn finish(
    context: &CallbackContext<'_>,
    answer: &AuthorizationResponse,
    may_answer: bool,
) -> Result<Response, CallbackError> {
    let CallbackContext {
        sign_in,
        provider,
        at,
        head,
        ..
    } = *context;
    let party = &provider.party;
    let transaction = find_transaction(sign_in, &head.headers, answer).map_err(CallbackError::Rejected)?;
    let rejected = |reason: Reason| Rejected {
        consumed: reason.consumes(),
        lacking: lacking(context, &transaction, &reason),
        reason,
        return_to: transaction.return_to.clone(),
    };

    if !may_answer || transaction.issuer != provider.mark {
        return Err(rejected(Reason::OtherProvider).into());
    }

    check_issuer(party, answer).await.map_err(rejected)?;
    let code = match check_message(answer) {
        Ok(code) => code,
        Err(Reason::InteractionNeeded) if transaction.silent => return Ok(anonymous(context, &transaction)),
        Err(reason) => return Err(rejected(reason).into()),
    };
    let redemption = Redemption {
        sign_in: sign_in.clone(),
        at,
        head: head.clone(),
        transaction: transaction.clone(),
        code: code.to_owned(),
    };
    let redeemed = redemption.once_over_all_edges().await;
    let redeemed = redeemed.map_err(|not_redeemed| match not_redeemed {
        NotRedeemed::Refused(reason) => rejected(*reason).into(),
        NotRedeemed::SessionServiceDown => CallbackError::SessionServiceDown(transaction.return_to.clone()),
    })?;
    if redeemed.is_ours {
        sign_in.metrics.login("success", &provider.id);
    }
    Ok(signed_in(context, &transaction, redeemed))
}

/// The answer that gives the browser its session.
fn signed_in(context: &CallbackContext<'_>, transaction: &Transaction, redeemed: Redeemed) -> Response {
    let (sign_in, headers) = (context.sign_in, &context.head.headers);
    let (id, session) = (&redeemed.id, CachedSession::new(redeemed.session));
    let return_to = transaction.return_to.as_ref();
    let lacking = return_to.and_then(|to| lacking::lacking(sign_in, id, &session, to));
    let cookies = [
        sign_in.sessions.cookie_for(headers, id, &session),
        sign_in
            .pending
            .clear(&transaction.state, context.provider.response_mode()),
        lacking.and_then(|lacking| sign_in.pending.remember_lacking(&lacking)),
    ];
    let mut response = landing(sign_in, context.site, &context.head.method, return_to, cookies);
    response
        .extensions_mut()
        .insert(SessionHandle(session.handle.clone()));
    response
}

/// The transaction: present, sealed by us, unexpired, its state equal.
fn find_transaction(
    sign_in: &SignIn,
    headers: &HeaderMap,
    answer: &AuthorizationResponse,
) -> Result<Transaction, Box<Rejected>> {
    let [state] = answer.state.as_slice() else {
        return Err(Box::new(Reason::State.into()));
    };
    let now_ms = sign_in.clock.now_ms();
    sign_in
        .pending
        .find(headers, state, now_ms)
        .map_err(|not_pending| {
            Box::new(match not_pending {
                NotPending::Unknown => Reason::UnknownTransaction.into(),
                NotPending::Expired(old) => Rejected {
                    reason: Reason::ExpiredTransaction,
                    return_to: old.return_to,
                    consumed: true,
                    lacking: None,
                },
            })
        })
}

/// Whether `iss` is the provider, and there if it was promised, whatever else the answer says (RFC 9207, section 2.4). Only to
/// learn what was promised the provider's metadata is read.
async fn check_issuer(party: &RelyingParty, answer: &AuthorizationResponse) -> Result<(), Reason> {
    match answer.iss.as_slice() {
        [iss] if *iss == party.settings().issuer => Ok(()),
        [] => {
            let metadata = party.metadata().await.map_err(Reason::Metadata)?;
            check_issuer_parameter(&metadata, None).map_err(|_missing| Reason::Issuer)
        }
        _ => Err(Reason::Issuer),
    }
}

/// `error`, then exactly one `code` (RFC 6749, appendix A.11).
fn check_message(answer: &AuthorizationResponse) -> Result<&str, Reason> {
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
    let visible = code.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if code.is_empty() || code.len() > MAX_CODE_BYTES || !visible {
        return Err(Reason::Code);
    }
    Ok(code)
}

/// What the session that stays after a refusal lacks for good: `auth_time` was requested and the provider left it out.
fn lacking(context: &CallbackContext<'_>, transaction: &Transaction, reason: &Reason) -> Option<String> {
    if !matches!(reason, Reason::IdToken(IdTokenError::NoAuthTime)) {
        return None;
    }
    let had = context.sign_in.cookies.read(&context.head.headers);
    let session = had.or_else(|| transaction.session.clone())?;
    lacking::undated(context.sign_in, &session, transaction.return_to.as_ref()?)
}

/// A silent sign-in found nobody: the visitor goes on as nobody, and the next attempt is put off, so that nothing goes round
/// in circles.
fn anonymous(context: &CallbackContext<'_>, transaction: &Transaction) -> Response {
    let (sign_in, provider) = (context.sign_in, context.provider);
    tracing::info!(provider = provider.id, "a silent sign-in found nobody");
    sign_in.metrics.login("anonymous", &provider.id);
    let mode = provider.response_mode();
    let cookies = [
        sign_in.pending.clear(&transaction.state, mode),
        sign_in.pending.mark_silent(&provider.id, mode),
    ];
    landing(
        sign_in,
        context.site,
        &context.head.method,
        transaction.return_to.as_ref(),
        cookies,
    )
}

fn refuse(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    headers: &HeaderMap,
    state: Option<&str>,
    rejected: &Rejected,
) -> Response {
    let label = rejected.reason.label();
    tracing::warn!(
        provider = provider.id,
        reason = label,
        error = &rejected.reason as &dyn std::error::Error,
        "callback refused"
    );
    sign_in.metrics.login("rejected", &provider.id);
    sign_in.metrics.callback_rejection(label);
    let try_again = sign_in.sites.of(headers).login_url(
        rejected.return_to.as_ref().map(ReturnTo::as_str),
        sign_in.providers.connection_of(provider.issuer()),
    );
    let mut response = HttpError::Callback {
        words: rejected.reason.words(),
        try_again,
    }
    .into_response();
    if let Some(lacking) = &rejected.lacking
        && let Some(cookie) = sign_in.pending.remember_lacking(lacking)
    {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    if rejected.consumed
        && let Some(cookie) = state.and_then(|state| sign_in.pending.clear(state, provider.response_mode()))
    {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
