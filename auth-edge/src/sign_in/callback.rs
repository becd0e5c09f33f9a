//! The callback route: the provider's answer becomes a session, or is refused.
//!
//! Invariants
//! - The checks run in the order that [`finish`] has them, and the first that fails ends it.
//! - A bad message causes no call to the provider, but for its metadata where only that tells whether `iss` may be left out.
//! - Each provider has a callback of its own; an answer to a sign-in begun at another one is worth nothing.
//! - Only the transaction that the state names is used up, and a code is redeemed once over all edges.
//! - A refusal creates nothing, changes no session and leaves other transactions alone.
//!
//! Deliberately absent: any word of the provider in the answer.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use chassis::audit::{AuditRecord, Event, Outcome};
use oidc::IdTokenError;
use session_proto::v1::Session;

use crate::http::device::record_from;
use crate::http::errors::{HttpError, Limit, NextStep};
use crate::http::no_content;
use crate::http::observe::SessionHandle;
use crate::http::request;
use crate::providers::IdentityProvider;
use crate::providers::sites::Site;
use crate::sessions::{CachedSession, Use};
use crate::sign_in::SignIn;
use crate::sign_in::authorization_response::{self, AuthorizationResponse};
use crate::sign_in::pending::NotPending;
use crate::sign_in::posted_name;
use crate::sign_in::redemption::{NotRedeemed, Redeemed, Redemption};
use crate::sign_in::refusal::{SignInRefusal, answered};
use crate::sign_in::rejected::{Reason, Rejected, refuse, try_again};
use crate::sign_in::transaction::{IssuerHash, Transaction};
use crate::sign_in::{NOT_A_VISIT, destination, device_binding, landing};
use crate::values::refusal::{RefusalReason, SignInStep};
use crate::values::return_to::ReturnTo;

/// Why a callback gives no session.
enum CallbackError {
    /// The provider's answer is refused.
    Rejected(Box<Rejected>),
    /// Our own session service is down; the visitor wanted to go there.
    SessionServiceDown(Option<ReturnTo>),
}

impl From<Rejected> for CallbackError {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(Box::new(rejected))
    }
}

/// Receives the provider's answer: in the query, or as a posted form when that is configured.
/// This is the callback of `provider` alone.
pub(crate) async fn handle(
    sign_in: Arc<SignIn>,
    provider: Arc<IdentityProvider>,
    request: Request,
) -> Response {
    let device = sign_in.device(&request);
    let handled = received(&sign_in, &provider, request).await;
    answered(&sign_in, SignInStep::Callback, device, handled)
}

async fn received(
    sign_in: &Arc<SignIn>,
    provider: &Arc<IdentityProvider>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, body) = request.into_parts();
    // Before anything is counted or read: another site's page must not use up its visitor's share, or their sign-in.
    if request::is_prefetch(&head.headers) {
        return Ok(no_content());
    }
    if !request::is_navigation(&head.headers) {
        return Err(NOT_A_VISIT);
    }
    let site = sign_in.sites.of(&head.headers);
    let answer = match authorization_response::read(&head, body).await {
        Ok(answer) => answer,
        Err(reason) => return Ok(without_transaction(sign_in, provider, &head, None, reason.into()).await),
    };
    let context = CallbackContext {
        sign_in,
        provider,
        site,
        head: &head,
    };
    match finish(&context, &answer).await {
        Ok(response) => Ok(response),
        Err(CallbackError::Rejected(mut rejected)) => {
            rejected.provider_error = answer.error_code();
            let state = answer.state.first().map(String::as_str);
            if rejected.reason.is_without_transaction() {
                return Ok(without_transaction(sign_in, provider, &head, state, *rejected).await);
            }
            Ok(refuse(sign_in, provider, &head.headers, state, *rejected))
        }
        Err(CallbackError::SessionServiceDown(return_to)) => {
            sign_in.metrics.login("unavailable", &provider.id);
            let try_again = try_again(sign_in, provider, &head.headers, return_to.as_ref());
            let refusal = SignInRefusal::new(SignInStep::Callback, RefusalReason::SessionServiceUnavailable);
            let answer = HttpError::CallbackUnavailable { try_again };
            Ok(refusal.answer(sign_in, Some(provider), answer))
        }
    }
}

/// The answer to a callback that no pending sign-in of this browser belongs to. A browser that is signed in by now goes on to
/// where its state leads; nothing is used up. Only such callbacks are counted, so that a person who comes back from the provider
/// is never refused for how many others did.
async fn without_transaction(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    head: &Parts,
    state: Option<&str>,
    mut rejected: Rejected,
) -> Response {
    let headers = &head.headers;
    if rejected.return_to.is_none() {
        rejected.return_to = state.and_then(|state| sign_in.pending.hint(headers, state));
    }
    let is_lost = matches!(
        rejected.reason,
        Reason::UnknownTransaction | Reason::ExpiredTransaction
    );
    if is_lost && is_signed_in(sign_in, headers).await {
        let target = destination(sign_in.sites.of(headers), rejected.return_to.as_ref());
        let expired = state.filter(|_| rejected.consumed);
        let clear = expired.and_then(|state| sign_in.pending.clear(state, provider.response_mode()));
        return landing(sign_in, headers, &head.method, target.as_str(), [clear]);
    }
    match sign_in.admit((&sign_in.callback_limit, Limit::Callbacks), head) {
        Ok(()) => refuse(sign_in, provider, headers, state, rejected),
        Err(too_many) => {
            let login = try_again(sign_in, provider, headers, rejected.return_to.as_ref());
            let refusal = SignInRefusal::new(SignInStep::Callback, RefusalReason::RateLimited);
            NextStep::TryAgain(login).of(refusal.answer(sign_in, Some(provider), too_many))
        }
    }
}

/// Whether the browser has a valid session; one that cannot be asked for is none.
async fn is_signed_in(sign_in: &SignIn, headers: &HeaderMap) -> bool {
    let current = sign_in.sessions.current(headers, Use::LookOnly).await;
    current.is_ok_and(|current| current.is_some())
}

/// What the callback of a request is handled with.
struct CallbackContext<'a> {
    sign_in: &'a Arc<SignIn>,
    provider: &'a Arc<IdentityProvider>,
    site: &'a Site,
    head: &'a Parts,
}

/// From the answer to the session. In this order:
/// 1. the transaction: of this browser, one, sealed by us, unexpired, its state equal;
/// 2. the provider: the one the sign-in was begun at, at a host where it may sign people in;
/// 3. `iss`, then `error`, then `code`;
/// 4. the claim of the sign-in, the code's redemption, the ID token, userinfo, the session ([`Redemption`]).
async fn finish(
    context: &CallbackContext<'_>,
    answer: &AuthorizationResponse,
) -> Result<Response, CallbackError> {
    let CallbackContext {
        sign_in,
        provider,
        site,
        head,
    } = *context;
    let transaction = find_transaction(sign_in, &head.headers, answer).map_err(CallbackError::Rejected)?;
    let rejected = |reason: Reason| Rejected {
        consumed: reason.consumes(),
        unmet_key: unmet_for_good(context, &transaction, &reason),
        reason,
        return_to: transaction.return_to.clone(),
        provider_error: None,
    };

    let may_sign_in_here = site.owner().is_none_or(|owner| owner.issuer == provider.issuer());
    if !may_sign_in_here || transaction.issuer != IssuerHash::of(provider.issuer()) {
        return Err(rejected(Reason::OtherProvider).into());
    }
    answer
        .check_issuer(&provider.relying_party)
        .await
        .map_err(rejected)?;
    let code = match answer.code() {
        Ok(code) => code,
        Err(Reason::InteractionNeeded) if transaction.silent => return Ok(anonymous(context, &transaction)),
        Err(reason) => return Err(rejected(reason).into()),
    };
    let redemption = Redemption {
        sign_in: sign_in.clone(),
        provider: provider.clone(),
        head: head.clone(),
        transaction: transaction.clone(),
        code: code.to_owned(),
        posted_name: posted_name::claims(
            answer.user.first().map(String::as_str),
            &provider.relying_party.settings().scope,
        ),
    };
    let redeemed = redemption.once_over_all_edges().await;
    let redeemed = redeemed.map_err(|not_redeemed| match not_redeemed {
        NotRedeemed::Refused(reason) => rejected(*reason).into(),
        NotRedeemed::SessionServiceDown => CallbackError::SessionServiceDown(transaction.return_to.clone()),
    })?;
    // Otherwise the request that redeemed the code has counted the sign-in.
    if redeemed.is_ours {
        sign_in.metrics.login("success", &provider.id);
        record(context, &redeemed.session);
    }
    Ok(signed_in(context, &transaction, redeemed))
}

/// Writes the audit record of a sign-in that succeeded.
fn record(context: &CallbackContext<'_>, session: &Session) {
    let head = context.head;
    let device = context
        .sign_in
        .devices
        .of(&head.headers, request::peer(&head.extensions));
    AuditRecord {
        actor: Some((&session.issuer, &session.subject)),
        session: Some(&session.handle),
        provider: Some(&context.provider.id),
        step: Some(SignInStep::Callback.name()),
        ..record_from(&device, Event::SignIn, Outcome::Success)
    }
    .write();
}

/// The answer that gives the browser its session.
fn signed_in(context: &CallbackContext<'_>, transaction: &Transaction, redeemed: Redeemed) -> Response {
    let (sign_in, headers) = (context.sign_in, &context.head.headers);
    let (id, session) = (&redeemed.id, CachedSession::new(redeemed.session));
    let return_to = transaction.return_to.as_ref();
    let unmet_key = return_to.and_then(|to| {
        let proved_anew = transaction.max_age == Some(0);
        sign_in.unmet_after_sign_in(id, &session, to, proved_anew)
    });
    let cookies = [
        sign_in.sessions.cookie_for(headers, id, &session),
        sign_in
            .pending
            .clear(&transaction.state, context.provider.response_mode()),
        unmet_key.and_then(|key| sign_in.pending.remember_unmet(&key)),
        sign_in.pending.clear_left(headers, &context.provider.id),
        person_cookie(sign_in, &session),
    ];
    let target = destination(context.site, return_to);
    let stop = device_binding::stop_on_the_way(sign_in, context.site, &target);
    let target = stop.as_deref().unwrap_or(target.as_str());
    let mut response = landing(sign_in, headers, &context.head.method, target, cookies);
    if let Some((name, offer)) = device_binding::offer(sign_in, id) {
        response.headers_mut().insert(name, offer);
    }
    response
        .extensions_mut()
        .insert(SessionHandle(session.handle.clone()));
    response
}

/// The cookie by which forms are kept for whoever signed in last, whatever the browser still says of somebody before: a form may
/// stand on a page that no guard sees.
fn person_cookie(sign_in: &SignIn, session: &CachedSession) -> Option<HeaderValue> {
    let person = (session.issuer.as_str(), session.subject.as_str());
    let set = || {
        sign_in
            .people
            .remember(&HeaderMap::new(), person, sign_in.clock.now_ms())
    };
    sign_in.routes.keep_forms().then(set).flatten()
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
                    unmet_key: None,
                    provider_error: None,
                },
            })
        })
}

/// The key of what the session that stays after a refusal will not meet: `auth_time` was requested and the provider left it
/// out, or the provider confirmed none of the classes requested.
fn unmet_for_good(
    context: &CallbackContext<'_>,
    transaction: &Transaction,
    reason: &Reason,
) -> Option<String> {
    let is_undated = match reason {
        Reason::IdToken(IdTokenError::NoAuthTime) => true,
        Reason::IdToken(IdTokenError::Acr(_)) => false,
        _ => return None,
    };
    let had = context.sign_in.cookies.read(&context.head.headers);
    let session = had.or_else(|| transaction.session.clone())?;
    context
        .sign_in
        .unmet_after_refusal(&session, transaction, is_undated)
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
        sign_in.pending.remember_silent(&provider.id, mode),
    ];
    landing(
        sign_in,
        &context.head.headers,
        &context.head.method,
        destination(context.site, transaction.return_to.as_ref()).as_str(),
        cookies,
    )
}
