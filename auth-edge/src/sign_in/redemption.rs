//! Redeems a code: claims it over all edges, exchanges it, validates tokens and creates a session.
//!
//! Invariants
//! - All edges together redeem a code once, even if its callback reaches several.
//! - A redemption runs to its end, even if the browser disconnects.
//! - A redemption that fails abandons its claim, so that no request waits for it.

use std::sync::Arc;

use chassis::audit::{AuditRecord, Event, Outcome, carried};
use oidc::{ExpectedIdToken, GroupsError, IdToken, ProviderError, TokenSet, UserinfoError};
use provider_settings::checkup::UserinfoReading;
use serde_json::{Map, Value};
use session_proto::timestamp;
use session_proto::v1::{self, CreateSessionRequest, Device, Session};
use tracing::Instrument as _;

use crate::http::device::record_from;
use crate::providers::IdentityProvider;
use crate::sessions::cookies::SessionId;
use crate::sign_in::SignIn;
use crate::sign_in::claim::{ClaimOutcome, SignInClaim, claim};
use crate::sign_in::error::SignInError;
use crate::sign_in::promised_claims::lacks_promised_claims;
use crate::sign_in::transaction::Transaction;
use crate::sign_in::user::{of_id_token, user};
use crate::values::refusal::SignInStep;

/// Longest wait for another redemption of the same code, in provider timeouts. A redemption usually takes less: its
/// token request, keys and userinfo have one timeout each.
const TIMEOUTS_WAITED: u32 = 2;

/// The claim that a provider leaves out if a user has too many groups.
const GROUPS: &str = "groups";

/// The input of a code's redemption.
pub(super) struct Redemption {
    /// The state of sign-in and sign-out.
    pub(super) sign_in: Arc<SignIn>,
    /// The provider that gave the code.
    pub(super) provider: Arc<IdentityProvider>,
    /// The redirect URI of the sign-in.
    pub(super) redirect_uri: String,
    /// The browser.
    pub(super) device: Device,
    /// The session that the browser had.
    pub(super) replaces: Option<SessionId>,
    /// The sign-in the code belongs to.
    pub(super) transaction: Transaction,
    /// The code.
    pub(super) code: String,
    /// Names that the provider posted with the code, unsigned.
    pub(super) posted_name: Map<String, Value>,
}

impl Redemption {
    /// The session and its secret ID, created here or by another request with the same callback.
    pub(super) async fn once_over_all_edges(self) -> Result<(SessionId, Session), SignInError> {
        let longest = self.provider.relying_party.settings().http_timeout * TIMEOUTS_WAITED;
        let claim = match claim(&self.sign_in, &self.transaction, longest).await? {
            ClaimOutcome::Ours(claim) => claim,
            ClaimOutcome::Created(id, session) => return Ok((id, *session)),
        };
        // Run to the end even if the browser disconnects: it may have sent the same callback again.
        // Boxed: each layer on the way to its own task would copy the whole future.
        let outcome = Box::pin(async move {
            let redeemed = self.redeem(&claim).await;
            if redeemed.is_err() {
                claim.abandon(&self.sign_in);
            }
            redeemed
        });
        let redeemed = tokio::spawn(carried(outcome.in_current_span())).await;
        redeemed.unwrap_or_else(|stopped| Err(SignInError::unavailable(&stopped, "fault in a callback")))
    }

    async fn redeem(&self, claim: &SignInClaim) -> Result<(SessionId, Session), SignInError> {
        let sign_in = &self.sign_in;
        let relying_party = &self.provider.relying_party;
        let verifier = &self.transaction.verifier;
        let exchange = relying_party.exchange_code(&self.code, verifier, &self.redirect_uri, self.now());
        let tokens = exchange.await?;
        let received_at_ms = claim.store_now_ms(sign_in);
        let sent = &self.transaction.record;
        let expected = ExpectedIdToken {
            nonce: &self.transaction.nonce,
            access_token: Some(&tokens.access_token),
            max_age: sent.max_age,
            acr_values: sent.acr_values.as_deref(),
            organization: sent.organization.as_deref(),
        };
        let validation = relying_party.validate_id_token(&tokens.id_token, &expected, self.now());
        let id_token = validation.await?;
        let userinfo = self.userinfo(&tokens, &id_token).await?;
        let mut further = self.posted_name.clone();
        if let Some(groups) = self.groups(&tokens, &id_token).await? {
            further.insert(GROUPS.to_owned(), groups.into());
        }
        // A verified token holds claims. Without them the session service rejects the request.
        let claims = of_id_token(&tokens.id_token);
        let filter = &sign_in.settings.claim_filter;
        let user = claims.and_then(|claims| user(&claims, userinfo, further, filter).ok());
        let request = CreateSessionRequest {
            user: user.unwrap_or_default(),
            request_id: claim.request_id.clone(),
            holder: claim.holder.clone(),
            tokens_received_at: received_at_ms.map(timestamp::from_ms),
            ..self.create_request(tokens, id_token)
        };
        let (id, session) = sign_in.sessions.create(request).await?;
        sign_in.metrics.login("success", &self.provider.id);
        AuditRecord {
            actor: Some((&session.issuer, &session.subject)),
            session: Some(&session.handle),
            provider: Some(&self.provider.id),
            step: Some(SignInStep::Callback.name()),
            ..record_from(&self.device, Event::SignIn, Outcome::Success)
        }
        .write();
        Ok((id, session))
    }

    /// The time in seconds since the Unix epoch.
    fn now(&self) -> u64 {
        self.sign_in.clock.now_ms() / 1000
    }

    /// The provider's userinfo, if the sign-in reads it.
    async fn userinfo(
        &self,
        tokens: &TokenSet,
        id_token: &IdToken,
    ) -> Result<Option<Map<String, Value>>, UserinfoError> {
        match self.sign_in.settings.userinfo_at_login {
            UserinfoReading::Never => Ok(None),
            UserinfoReading::Always => self.ask_userinfo(tokens, id_token).await.map(Some),
            UserinfoReading::Auto if !lacks_promised_claims(&tokens.scope, &id_token.claims) => Ok(None),
            UserinfoReading::Auto => match self.ask_userinfo(tokens, id_token).await {
                Ok(userinfo) => Ok(Some(userinfo)),
                // The provider has no userinfo endpoint.
                Err(UserinfoError::Provider(ProviderError::MissingEndpoint { .. })) => Ok(None),
                // Userinfo of another subject is an error: the access token is not this user's (Core 5.3.2).
                Err(error) if !matches!(error, UserinfoError::Subject) => {
                    tracing::warn!(
                        provider = self.provider.id,
                        error = &error as &dyn std::error::Error,
                        "signed in without the claims of userinfo"
                    );
                    Ok(None)
                }
                Err(error) => Err(error),
            },
        }
    }

    /// The user's groups, if the ID token leaves them out because there are too many.
    async fn groups(
        &self,
        tokens: &TokenSet,
        id_token: &IdToken,
    ) -> Result<Option<Vec<String>>, GroupsError> {
        let names = id_token.claims.get("_claim_names");
        if names.and_then(|names| names.get(GROUPS)).is_none() {
            return Ok(None);
        }
        let relying_party = &self.provider.relying_party;
        let groups = relying_party
            .groups(&tokens.token_type, &tokens.access_token, self.now())
            .await?;
        if groups.is_none() {
            tracing::warn!(
                provider = self.provider.id,
                "the ID token leaves out the claim groups because the user has too many: set the address of the groups (OIDC_ENDPOINTS=groups=URL), or make the provider send only groups that are assigned to the application"
            );
        }
        Ok(groups)
    }

    async fn ask_userinfo(
        &self,
        tokens: &TokenSet,
        id_token: &IdToken,
    ) -> Result<Map<String, Value>, UserinfoError> {
        let token = (&tokens.token_type, &tokens.access_token);
        let relying_party = &self.provider.relying_party;
        relying_party
            .userinfo(token.0, token.1, &id_token.sub, self.now())
            .await
    }

    /// The request that creates the session. It replaces a valid session that the browser sends or had.
    fn create_request(&self, tokens: TokenSet, id_token: IdToken) -> CreateSessionRequest {
        let seconds = |secs: u64| timestamp::from_ms(secs.saturating_mul(1000));
        let replaces = self.replaces.as_ref().map(SessionId::expose);
        let id_token_hint = Some(tokens.id_token).filter(|_| self.sign_in.settings.store_id_token);
        CreateSessionRequest {
            issuer: id_token.iss,
            tokens: Some(v1::TokenSet {
                access_token: tokens.access_token,
                token_type: tokens.token_type,
                scope: tokens.scope,
                expires_at: Some(seconds(tokens.expires_at)),
                refresh_token: tokens.refresh_token.unwrap_or_default(),
                id_token: id_token_hint.unwrap_or_default(),
            }),
            provider_sid: id_token.sid.unwrap_or_default(),
            authenticated_at: id_token.auth_time.map(seconds),
            device: Some(self.device.clone()),
            replaces_session_id: replaces.unwrap_or_default().to_owned(),
            not_after: id_token.session_expiry.map(seconds),
            ..CreateSessionRequest::default()
        }
    }
}
