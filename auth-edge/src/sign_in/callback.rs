//! The callback route: turns the provider's answer into a session, or rejects it.
//!
//! Invariants
//! - The checks run in the order of [`Callback::finish`]. The first that fails ends the callback.
//! - A bad message causes no call to the provider. Exception: its metadata, if `iss` is absent.
//! - Each provider has its own callback. It rejects an answer to a sign-in at another provider.
//! - Only the transaction that the state names is used up. All edges together redeem a code once.
//! - A rejection creates nothing, changes no session, and keeps all other transactions.
//!
//! Deliberately absent: the provider's text in the answer.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use session_proto::v1::Session;

use crate::http::errors::{HttpError, Limit};
use crate::http::no_content;
use crate::http::observe::SessionHandle;
use crate::http::pages::NextStep;
use crate::http::request;
use crate::kept_form::person_cookie::tag;
use crate::providers::IdentityProvider;
use crate::providers::sites::Site;
use crate::sessions::cookies::SessionId;
use crate::sessions::{CachedSession, SessionUse};
use crate::sign_in::SignIn;
use crate::sign_in::authorization_response::{self, AuthorizationResponse};
use crate::sign_in::error::SignInError;
use crate::sign_in::frame;
use crate::sign_in::pending::reminders::Reminder;
use crate::sign_in::posted_name;
use crate::sign_in::redemption::Redemption;
use crate::sign_in::transaction::{SignInPlace, Transaction, is_of_frame};
use crate::sign_in::{NOT_A_NAVIGATION, destination, device_binding, redirect_with_cookies};
use crate::values::refusal::{RefusalReason, SignInStep};
use crate::values::return_to::ReturnTo;

/// Receives the answer of `provider`, in the query or, if configured, as a posted form.
pub(crate) async fn handle(
    sign_in: Arc<SignIn>,
    provider: Arc<IdentityProvider>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let callback = Callback {
        sign_in: &sign_in,
        provider: &provider,
        site: sign_in.sites.of(&head.headers),
        head: &head,
        place: SignInPlace::Window,
    };
    let handled = callback.receive(body).await;
    sign_in.answer(SignInStep::Callback, &head, handled)
}

/// One request to the callback of a provider.
pub(super) struct Callback<'a> {
    pub(super) sign_in: &'a Arc<SignIn>,
    pub(super) provider: &'a Arc<IdentityProvider>,
    pub(super) site: &'a Site,
    pub(super) head: &'a Parts,
    /// Where the request comes from.
    pub(super) place: SignInPlace,
}

impl Callback<'_> {
    async fn receive(&self, body: Body) -> Result<Response, HttpError> {
        let headers = &self.head.headers;
        if request::is_prefetch(headers) {
            return Ok(no_content());
        }
        if !request::is_navigation(headers) {
            return Err(NOT_A_NAVIGATION);
        }
        let answer = match authorization_response::read(self.head, body).await {
            Ok(answer) => answer,
            Err(reason) => return Ok(self.answer_lost(reason.into(), None, None).await),
        };
        if let [state] = answer.state.as_slice()
            && is_of_frame(&self.sign_in.keys, state)
        {
            return frame::hand_over(self, answer);
        }
        Ok(self.check(&answer).await)
    }

    /// Finishes the sign-in that the response belongs to, or rejects the response.
    pub(super) async fn check(&self, answer: &AuthorizationResponse) -> Response {
        let headers = &self.head.headers;
        let rejected = |error: SignInError| SignInError {
            provider_error: answer.error_code(),
            ..error
        };
        let state = answer.state.first().map(String::as_str);
        // The transaction must be present, sealed by us and unexpired. Its state must be equal.
        let found = match answer.state.as_slice() {
            [state] => {
                let now_ms = self.sign_in.clock.now_ms();
                self.sign_in.pending.find(headers, state, now_ms)
            }
            _ => Err((RefusalReason::State, None)),
        };
        let transaction = match found {
            Ok(transaction) => transaction,
            Err((reason, return_to)) => {
                return self.answer_lost(rejected(reason.into()), state, return_to).await;
            }
        };
        let session = self.sign_in.cookies.read(headers);
        let session = session.or_else(|| transaction.session());
        let finished = self.finish(&transaction, session.as_ref(), answer).await;
        finished.unwrap_or_else(|error| {
            let error = rejected(error);
            let unmet = |id| self.sign_in.unmet_after_refusal(id, &transaction, error.reason);
            let unmet_key = session.as_ref().and_then(unmet);
            self.reject(error, state, transaction.return_to.as_ref(), unmet_key)
        })
    }

    /// Answers a callback without a pending sign-in of this browser. A browser that is signed in by now goes to its
    /// destination, and nothing is used up. Only callbacks without a pending sign-in count towards the limit. So
    /// other users' callbacks never cause the rejection of a user who returns from the provider.
    pub(super) async fn answer_lost(
        &self,
        error: SignInError,
        state: Option<&str>,
        return_to: Option<ReturnTo>,
    ) -> Response {
        let (sign_in, headers) = (self.sign_in, &self.head.headers);
        let return_to = return_to.or_else(|| sign_in.pending.hint(headers, state?));
        let is_expired = error.reason == RefusalReason::ExpiredTransaction;
        let is_lost = is_expired || error.reason == RefusalReason::UnknownTransaction;
        // If the session service does not answer, the browser counts as signed out.
        if is_lost
            && matches!(
                sign_in.sessions.current(headers, SessionUse::LookOnly).await,
                Ok(Some(_))
            )
        {
            let target = destination(self.site, return_to.as_ref());
            let expired = state.filter(|_| is_expired);
            let clear = expired.and_then(|state| sign_in.pending.clear(state, self.provider.response_mode()));
            return redirect_with_cookies(sign_in, headers, &self.head.method, target.as_str(), [clear]);
        }
        match sign_in.admit((&sign_in.callback_limit, Limit::Callbacks), self.head) {
            Ok(()) => self.reject(error, state, return_to.as_ref(), None),
            Err(too_many) => {
                let error = RefusalReason::RateLimited.into();
                let (step, provider) = (SignInStep::Callback, Some(&**self.provider));
                let response = sign_in.reject_with(step, provider, self.head, error, too_many);
                self.try_again(return_to.as_ref()).of(response)
            }
        }
    }

    /// The next step: a sign-in at the same provider, to the same destination. In a frame the destination itself asks
    /// for the sign-in.
    fn try_again(&self, return_to: Option<&ReturnTo>) -> NextStep {
        if self.place == SignInPlace::Frame {
            return NextStep::TryAgain(destination(self.site, return_to).as_str().to_owned());
        }
        let connection = self.sign_in.providers.connection_of(self.provider.issuer());
        let return_to = return_to.map(ReturnTo::as_str);
        NextStep::TryAgain(self.site.login_url(return_to, connection))
    }

    /// Answers with the page of a rejection. The browser stores the key of the unmet requirements, and drops
    /// a transaction that is used up.
    fn reject(
        &self,
        error: SignInError,
        state: Option<&str>,
        return_to: Option<&ReturnTo>,
        unmet_key: Option<String>,
    ) -> Response {
        let (sign_in, provider, reason) = (self.sign_in, self.provider, error.reason);
        let outcome = match reason {
            RefusalReason::SessionServiceUnavailable => "unavailable",
            _ => "rejected",
        };
        sign_in.metrics.login(outcome, &provider.id);
        // If the edge cannot read the provider's metadata, it has not redeemed the code either.
        let is_used_up = !reason.keeps_pending() && error.outage.is_none();
        let used_up = state.filter(|_| is_used_up);
        let cookies = [
            unmet_key.and_then(|key| sign_in.pending.remember(Reminder::Unmet(&key))),
            used_up.and_then(|state| sign_in.pending.clear(state, provider.response_mode())),
        ];
        let mut response = sign_in.reject(SignInStep::Callback, Some(provider), self.head, error);
        for cookie in cookies.into_iter().flatten() {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        if reason.is_final() {
            return response;
        }
        self.try_again(return_to).of(response)
    }

    /// Turns the answer into a session. Checks in this order:
    /// 1. the provider: the sign-in began at it, and it may sign users in at this host;
    /// 2. `iss`, then `error`, then `code`;
    /// 3. the sign-in's claim, the code's redemption, ID token, userinfo and session ([`Redemption`]).
    async fn finish(
        &self,
        transaction: &Transaction,
        session: Option<&SessionId>,
        answer: &AuthorizationResponse,
    ) -> Result<Response, SignInError> {
        let (sign_in, provider) = (self.sign_in, self.provider);
        let owner = self.site.owner.as_ref();
        let may_sign_in_here = owner.is_none_or(|owner| owner == provider.issuer());
        if !may_sign_in_here || !transaction.is_at(provider.issuer()) {
            return Err(RefusalReason::OtherProvider.into());
        }
        answer.check_issuer(&provider.relying_party).await?;
        let code = match answer.code() {
            Err(RefusalReason::InteractionNeeded) if transaction.record.silent => {
                return Ok(self.continue_signed_out(transaction));
            }
            code => code?,
        };
        let redemption = Redemption {
            sign_in: sign_in.clone(),
            provider: provider.clone(),
            redirect_uri: self.site.at(&provider.callback_path),
            device: sign_in.device(self.head),
            replaces: session.cloned(),
            transaction: transaction.clone(),
            code: code.to_owned(),
            posted_name: posted_name::claims(
                answer.user.first().map(String::as_str),
                &provider.relying_party.settings().scope,
            ),
        };
        let (id, session) = redemption.once_over_all_edges().await?;
        Ok(self.sign_in(transaction, &id, session))
    }

    /// Sends the browser its session.
    fn sign_in(&self, transaction: &Transaction, id: &SessionId, session: Session) -> Response {
        let (sign_in, headers) = (self.sign_in, &self.head.headers);
        let session = CachedSession::new(session);
        let return_to = transaction.return_to.as_ref();
        let unmet_key = return_to.and_then(|to| {
            let proved_anew = transaction.record.max_age == Some(0);
            sign_in.unmet_after_sign_in(id, &session, to, proved_anew)
        });
        let cookies = [
            sign_in.sessions.cookie_for(headers, id, &session),
            sign_in
                .pending
                .clear(&transaction.state, self.provider.response_mode()),
            unmet_key.and_then(|key| sign_in.pending.remember(Reminder::Unmet(&key))),
            sign_in.pending.clear_left(headers, &self.provider.id),
            person_cookie(sign_in, &session),
        ];
        let target = destination(self.site, return_to);
        let stop = device_binding::binding_page_url(sign_in, self.site, &target);
        let target = stop.as_deref().unwrap_or(target.as_str());
        let mut response = redirect_with_cookies(sign_in, headers, &self.head.method, target, cookies);
        if let Some((name, offer)) = device_binding::offer(sign_in, id) {
            response.headers_mut().insert(name, offer);
        }
        response
            .extensions_mut()
            .insert(SessionHandle(session.handle.clone()));
        response
    }

    /// A silent sign-in found no user: the visitor continues without a session. A reminder delays the next
    /// attempt, so that there is no loop.
    fn continue_signed_out(&self, transaction: &Transaction) -> Response {
        let (sign_in, provider) = (self.sign_in, self.provider);
        tracing::info!(provider = provider.id, "a silent sign-in found no signed-in user");
        sign_in.metrics.login("anonymous", &provider.id);
        let cookies = [
            sign_in
                .pending
                .clear(&transaction.state, provider.response_mode()),
            sign_in.pending.remember(Reminder::Silent(&provider.id)),
        ];
        let target = destination(self.site, transaction.return_to.as_ref());
        let head = self.head;
        redirect_with_cookies(sign_in, &head.headers, &head.method, target.as_str(), cookies)
    }
}

/// The cookie that names the owner of kept forms: the user who signed in last. It always replaces the cookie
/// of an earlier user, since a form may be on a page without a guard.
fn person_cookie(sign_in: &SignIn, session: &CachedSession) -> Option<HeaderValue> {
    let person = tag(&session.issuer, &session.subject);
    let set = || {
        sign_in
            .people
            .remember(&HeaderMap::new(), person, sign_in.clock.now_ms())
    };
    let keeps_forms = sign_in.routes.with(|table| table.facts.keeps_forms);
    keeps_forms.then(set).flatten()
}
