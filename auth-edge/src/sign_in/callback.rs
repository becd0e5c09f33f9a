//! The callback route: the provider's answer becomes a session, or is refused.
//!
//! Invariants: the checks run in the order of the contract and the first that fails ends it; a bad message causes no call to the
//! provider; each provider has a callback of its own, and an answer to a sign-in begun at another one is worth nothing; only the transaction that the state names is used up; a code is redeemed once over all edges; a refusal creates nothing, changes no session and
//! leaves other transactions alone. Deliberately absent: any word of the provider in the answer.

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use oidc::{Expected, RelyingParty, check_issuer_parameter};
use session_proto::v1::Session;
use tracing::Instrument as _;

use crate::cookies::SessionId;
use crate::edge::Edge;
use crate::errors::Failure;
use crate::observe::Handle;
use crate::providers::Provider;
use crate::request;
use crate::return_to::ReturnTo;
use crate::sign_in::answer::{Answer, read_answer};
use crate::sign_in::claim::{Claim, Claimed, claim};
use crate::sign_in::landing;
use crate::sign_in::new_session::create_request;
use crate::sign_in::pending::NotPending;
use crate::sign_in::rejected::{Reason, Rejected};
use crate::sign_in::transaction::Transaction;
use crate::sites::Site;

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
/// `at` is the place of the provider whose callback this is.
pub async fn handle(edge: Edge, at: usize, request: Request) -> Result<Response, Failure> {
    let provider = edge.providers.all().get(at).ok_or(Failure::NotFound)?;
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
        Err(reason) => return Ok(refuse(&edge, provider, &head.headers, None, &reason.into())),
    };
    let site = edge.sites.of(&head.headers);
    let way = Way {
        edge: &edge,
        provider,
        at,
        site,
        head: &head,
    };
    let may_answer = site.owner().is_none_or(|owner| owner.provider == at);
    match finish(&way, &answer, may_answer).await {
        Ok(response) => Ok(response),
        Err(Ended::Rejected(rejected)) => {
            let state = answer.state.first().map(String::as_str);
            Ok(refuse(&edge, provider, &head.headers, state, &rejected))
        }
        Err(Ended::SessionServiceDown(return_to)) => {
            edge.metrics.login("unavailable", &provider.id);
            let return_to = return_to.as_ref().map(ReturnTo::as_str);
            let try_again = site.login_url(return_to, edge.providers.connection_of(provider.issuer()));
            Err(Failure::CallbackUnavailable { try_again })
        }
    }
}

/// What a callback goes through with.
struct Way<'a> {
    edge: &'a Edge,
    provider: &'a Provider,
    /// Its place.
    at: usize,
    site: &'a Site,
    head: &'a Parts,
}

/// The whole way from the answer to the session, in the order of the contract.
async fn finish(way: &Way<'_>, answer: &Answer, may_answer: bool) -> Result<Response, Ended> {
    let Way {
        edge,
        provider,
        at,
        head,
        ..
    } = *way;
    let party = &provider.party;
    let transaction = find_transaction(edge, &head.headers, answer).map_err(Ended::Rejected)?;
    let return_to = transaction.return_to.clone();
    let rejected = |reason: Reason| Rejected {
        reason,
        return_to: transaction.return_to.clone(),
        consumed: true,
    };

    if !may_answer || transaction.issuer != provider.mark {
        return Err(rejected(Reason::OtherProvider).into());
    }

    let code = match check_message(party, answer).await {
        Ok(code) => code,
        Err(Reason::InteractionNeeded) if transaction.silent => {
            check_promised_issuer(party, answer).await.map_err(rejected)?;
            return Ok(anonymous(way, &transaction));
        }
        Err(reason) => return Err(rejected(reason).into()),
    };
    // Longer than a request that has it usually takes: token request, keys and userinfo are bounded each by the timeout.
    let patience = party.settings().http_timeout * 2;
    let claim = match claim(edge, &transaction, patience).await {
        Ok(Claimed::Ours(claim)) => claim,
        Ok(Claimed::Created(id, session)) => return Ok(signed_in(way, &transaction, &id, *session)),
        Ok(Claimed::UsedUp) => return Err(rejected(Reason::AlreadyUsed).into()),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a sign-in could not be claimed"
            );
            return Err(Ended::SessionServiceDown(return_to));
        }
    };
    // To its end, also when the browser hangs up: it may have sent the same callback a second time.
    let redemption = Redemption {
        edge: edge.clone(),
        at,
        head: head.clone(),
        transaction: transaction.clone(),
        code: code.to_owned(),
    };
    let redeemed = tokio::spawn(redemption.outcome(claim).in_current_span()).await;
    let (id, session) = redeemed.map_err(|stopped| {
        tracing::error!(error = &stopped as &dyn std::error::Error, "fault in a callback");
        Ended::SessionServiceDown(return_to)
    })??;
    edge.metrics.login("success", &provider.id);
    Ok(signed_in(way, &transaction, &id, session))
}

/// What a code is redeemed with.
struct Redemption {
    edge: Edge,
    /// The place of the provider.
    at: usize,
    head: Parts,
    transaction: Transaction,
    code: String,
}

impl Redemption {
    /// The session of a claimed sign-in. What does not become one is given up.
    async fn outcome(self, claim: Claim) -> Result<(SessionId, Session), Ended> {
        let redeemed = redeem(&self, &claim).await;
        if redeemed.is_err() {
            claim.abandon(&self.edge);
        }
        redeemed
    }
}

/// From the code to the session.
async fn redeem(redemption: &Redemption, claim: &Claim) -> Result<(SessionId, Session), Ended> {
    let Redemption {
        edge,
        at,
        head,
        transaction,
        code,
    } = redemption;
    let return_to = transaction.return_to.clone();
    let rejected = |reason: Reason| Rejected {
        reason,
        return_to: transaction.return_to.clone(),
        consumed: true,
    };
    let provider = edge
        .providers
        .all()
        .get(*at)
        .ok_or_else(|| rejected(Reason::OtherProvider))?;
    let (party, site) = (&provider.party, edge.sites.of(&head.headers));
    let now_ms = edge.clock.now_ms();
    let tokens = party
        .exchange_code(
            code,
            &transaction.verifier,
            &site.at(&provider.callback_path),
            now_ms / 1000,
        )
        .await
        .map_err(|error| rejected(Reason::Exchange(error)))?;
    let received_at_ms = claim.store_now_ms(edge);
    let expected = Expected {
        nonce: &transaction.nonce,
        access_token: Some(&tokens.access_token),
        max_age: transaction.max_age,
        acr_values: transaction.acr_values.as_deref(),
        organization: transaction.organization.as_deref(),
    };
    let id_token = party
        .validate_id_token(&tokens.id_token, &expected, edge.clock.now_ms() / 1000)
        .await
        .map_err(|error| rejected(Reason::IdToken(error)))?;
    let userinfo = if edge.settings.userinfo_at_login {
        let now = edge.clock.now_ms() / 1000;
        let userinfo = party
            .userinfo(&tokens.token_type, &tokens.access_token, &id_token.sub, now)
            .await;
        Some(userinfo.map_err(|error| rejected(Reason::Userinfo(error)))?)
    } else {
        None
    };

    let mut request = create_request(
        edge,
        head,
        transaction.session.clone(),
        tokens,
        id_token,
        userinfo,
    );
    claim.put_into(&mut request, received_at_ms);
    edge.sessions.create(request).await.map_err(|error| {
        if error.is_unavailable() {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "no session could be created"
            );
            Ended::SessionServiceDown(return_to.clone())
        } else {
            rejected(Reason::Session(error)).into()
        }
    })
}

/// The answer that gives the browser its session.
fn signed_in(way: &Way<'_>, transaction: &Transaction, id: &SessionId, session: Session) -> Response {
    let (edge, headers) = (way.edge, &way.head.headers);
    let cookies = [
        edge.sessions.cookie_for(headers, id, &session),
        edge.pending
            .clear(&transaction.state, way.provider.response_mode()),
    ];
    let return_to = transaction.return_to.as_ref();
    let mut response = landing(edge, way.site, &way.head.method, return_to, cookies);
    response.extensions_mut().insert(Handle(session.handle));
    response
}

/// The transaction: present, sealed by us, unexpired, its state equal.
fn find_transaction(edge: &Edge, headers: &HeaderMap, answer: &Answer) -> Result<Transaction, Box<Rejected>> {
    let [state] = answer.state.as_slice() else {
        return Err(Box::new(Reason::State.into()));
    };
    let now_ms = edge.clock.now_ms();
    edge.pending.find(headers, state, now_ms).map_err(|not_pending| {
        Box::new(match not_pending {
            NotPending::Unknown => Reason::UnknownTransaction.into(),
            NotPending::Expired(old) => Rejected {
                reason: Reason::ExpiredTransaction,
                return_to: old.return_to,
                consumed: true,
            },
        })
    })
}

/// `iss`, then `error`, then exactly one `code`. The provider's metadata is asked for only if all else is well.
async fn check_message<'a>(party: &RelyingParty, answer: &'a Answer) -> Result<&'a str, Reason> {
    match answer.iss.as_slice() {
        [] => {}
        [iss] if *iss == party.settings().issuer => {}
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
    check_promised_issuer(party, answer).await?;
    Ok(code)
}

/// Whether `iss` is there if the provider promises it (RFC 9207, section 2.4).
async fn check_promised_issuer(party: &RelyingParty, answer: &Answer) -> Result<(), Reason> {
    let metadata = party.metadata().await.map_err(Reason::Metadata)?;
    let iss = answer.iss.first().map(String::as_str);
    check_issuer_parameter(&metadata, iss).map_err(|_wrong| Reason::Issuer)
}

/// A silent sign-in found nobody: the visitor goes on as nobody, and the next attempt is put off, so that nothing goes round
/// in circles.
fn anonymous(way: &Way<'_>, transaction: &Transaction) -> Response {
    let (edge, provider) = (way.edge, way.provider);
    tracing::info!(provider = provider.id, "a silent sign-in found nobody");
    edge.metrics.login("anonymous", &provider.id);
    let mode = provider.response_mode();
    let cookies = [
        edge.pending.clear(&transaction.state, mode),
        edge.pending.mark_silent(&provider.id, mode),
    ];
    landing(
        edge,
        way.site,
        &way.head.method,
        transaction.return_to.as_ref(),
        cookies,
    )
}

fn refuse(
    edge: &Edge,
    provider: &Provider,
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
    edge.metrics.login("rejected", &provider.id);
    edge.metrics.callback_rejection(label);
    let try_again = edge.sites.of(headers).login_url(
        rejected.return_to.as_ref().map(ReturnTo::as_str),
        edge.providers.connection_of(provider.issuer()),
    );
    let mut response = Failure::Callback {
        words: rejected.reason.words(),
        try_again,
    }
    .into_response();
    if rejected.consumed
        && let Some(cookie) = state.and_then(|state| edge.pending.clear(state, provider.response_mode()))
    {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
