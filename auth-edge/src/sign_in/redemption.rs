//! From the code to the session: claimed over all edges, exchanged, validated, created.
//!
//! Invariants: a code is redeemed once, whichever edges its callback reaches; a redemption that has begun goes on to its end although
//! the browser hangs up; what does not become a session is given up, so that nobody waits for it.

use std::sync::Arc;

use axum::http::request::Parts;
use oidc::{Expected, IdToken, IdTokenError, TokenSet, UserinfoError};
use serde_json::{Map, Value};
use session_proto::v1::Session;
use tracing::Instrument as _;

use crate::providers::IdentityProvider;
use crate::sessions::cookies::SessionId;
use crate::sign_in::SignIn;
use crate::sign_in::claim::{ClaimOutcome, HeldClaim, claim};
use crate::sign_in::new_session::create_request;
use crate::sign_in::rejected::Reason;
use crate::sign_in::transaction::Transaction;

/// How often the provider's timeout another redemption of the same code is waited for: longer than one usually takes, whose token request,
/// keys and userinfo are bounded each by that timeout.
const TIMEOUTS_WAITED: u32 = 2;

/// What a code is redeemed with.
pub(super) struct Redemption {
    /// Signing in and out.
    pub(super) sign_in: Arc<SignIn>,
    /// Which of the providers gave the code.
    pub(super) at: usize,
    /// The head of the callback.
    pub(super) head: Parts,
    /// The sign-in the code belongs to.
    pub(super) transaction: Transaction,
    /// The code.
    pub(super) code: String,
}

/// The session of a sign-in.
pub(super) struct Redeemed {
    /// Its secret name.
    pub(super) id: SessionId,
    /// What it holds.
    pub(super) session: Session,
    /// Whether it was created here, and not by another request with the same callback.
    pub(super) is_ours: bool,
}

/// Why a code became no session.
pub(super) enum NotRedeemed {
    /// The provider's answer was refused.
    Refused(Box<Reason>),
    /// The session service cannot be reached.
    SessionServiceDown,
}

impl From<Reason> for NotRedeemed {
    fn from(reason: Reason) -> Self {
        Self::Refused(Box::new(reason))
    }
}

impl Redemption {
    /// The session: created here, or by another request that has the same callback.
    pub(super) async fn once_over_all_edges(self) -> Result<Redeemed, NotRedeemed> {
        let longest = self.provider()?.party.settings().http_timeout * TIMEOUTS_WAITED;
        let claim = match claim(&self.sign_in, &self.transaction, longest).await {
            Ok(ClaimOutcome::Ours(claim)) => claim,
            Ok(ClaimOutcome::Created(id, session)) => {
                return Ok(Redeemed {
                    id,
                    session: *session,
                    is_ours: false,
                });
            }
            Ok(ClaimOutcome::UsedUp) => return Err(Reason::AlreadyUsed.into()),
            Err(error) => return Err(unavailable(&error, "a sign-in could not be claimed")),
        };
        // To its end, also when the browser hangs up: it may have sent the same callback a second time.
        let redeemed = tokio::spawn(self.outcome(claim).in_current_span()).await;
        redeemed.unwrap_or_else(|stopped| Err(unavailable(&stopped, "fault in a callback")))
    }

    /// The session of a claimed sign-in. What does not become one is given up.
    async fn outcome(self, claim: HeldClaim) -> Result<Redeemed, NotRedeemed> {
        let redeemed = self.redeem(&claim).await;
        if redeemed.is_err() {
            claim.abandon(&self.sign_in);
        }
        redeemed
    }

    async fn redeem(&self, claim: &HeldClaim) -> Result<Redeemed, NotRedeemed> {
        let sign_in = &self.sign_in;
        let provider = self.provider()?;
        let tokens = self.exchange(provider).await?;
        let received_at_ms = claim.store_now_ms(sign_in);
        let id_token = self.validate(provider, &tokens).await.map_err(Reason::IdToken)?;
        let userinfo = self.userinfo(provider, &tokens, &id_token).await;
        let userinfo = userinfo.map_err(Reason::Userinfo)?;
        let replaces = self.transaction.session.clone();
        let mut request = create_request(sign_in, &self.head, replaces, tokens, id_token, userinfo);
        claim.put_into(&mut request, received_at_ms);
        match sign_in.sessions.create(request).await {
            Ok((id, session)) => Ok(Redeemed {
                id,
                session,
                is_ours: true,
            }),
            Err(error) if error.is_unavailable() => Err(unavailable(&error, "no session could be created")),
            Err(error) => Err(Reason::Session(error).into()),
        }
    }

    fn provider(&self) -> Result<&IdentityProvider, Reason> {
        self.sign_in
            .providers
            .all()
            .get(self.at)
            .ok_or(Reason::OtherProvider)
    }

    async fn exchange(&self, provider: &IdentityProvider) -> Result<TokenSet, Reason> {
        let (sign_in, verifier) = (&self.sign_in, &self.transaction.verifier);
        let redirect_uri = sign_in.sites.of(&self.head.headers).at(&provider.callback_path);
        let now = sign_in.clock.now_ms() / 1000;
        let exchanged = provider
            .party
            .exchange_code(&self.code, verifier, &redirect_uri, now)
            .await;
        exchanged.map_err(Reason::Exchange)
    }

    async fn validate(
        &self,
        provider: &IdentityProvider,
        tokens: &TokenSet,
    ) -> Result<IdToken, IdTokenError> {
        let transaction = &self.transaction;
        let expected = Expected {
            nonce: &transaction.nonce,
            access_token: Some(&tokens.access_token),
            max_age: transaction.max_age,
            acr_values: transaction.acr_values.as_deref(),
            organization: transaction.organization.as_deref(),
        };
        let now = self.sign_in.clock.now_ms() / 1000;
        provider
            .party
            .validate_id_token(&tokens.id_token, &expected, now)
            .await
    }

    /// What the provider says of the person, where sign-in reads it.
    async fn userinfo(
        &self,
        provider: &IdentityProvider,
        tokens: &TokenSet,
        id_token: &IdToken,
    ) -> Result<Option<Map<String, Value>>, UserinfoError> {
        if !self.sign_in.settings.userinfo_at_login {
            return Ok(None);
        }
        let now = self.sign_in.clock.now_ms() / 1000;
        let userinfo = provider
            .party
            .userinfo(&tokens.token_type, &tokens.access_token, &id_token.sub, now)
            .await?;
        Ok(Some(userinfo))
    }
}

/// Logs why, for operators; the answer only offers to try again.
fn unavailable(error: &(dyn std::error::Error + 'static), problem: &str) -> NotRedeemed {
    tracing::error!(error, "{problem}");
    NotRedeemed::SessionServiceDown
}
