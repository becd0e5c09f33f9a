//! Tokens of an API's own authorization server, for an assertion of the provider (ID-JAG,
//! draft-ietf-oauth-identity-assertion-authz-grant-03).
//!
//! Invariants
//! - An assertion is used for one token, and is never stored or returned.
//! - An assertion for another server or client is not sent.
//!
//! Deliberately absent: a check of the assertion's signature. The provider sent it over TLS in answer to this client,
//! and the API's server verifies it. The draft's `jti` is that server's as well.

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};

use super::RelyingParty;
use super::api_tokens::TOKEN_EXCHANGE;
use crate::grants::grant::{self, ID_JAG};
use crate::settings::token_target::TokenTarget;
use crate::tokens::claims::ClaimChecks;
use crate::tokens::jws::UnverifiedToken;
use crate::{AcceptedAlgorithms, CrossAppError, DpopKey, GrantError, ProviderSettings, RefreshedTokens};

const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
/// The grant of an assertion (RFC 7523, section 2.1).
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The `typ` of an assertion (section 3.1 of the draft).
const ASSERTION_TYPE: [&str; 1] = ["application/oauth-id-jag+jwt"];

impl RelyingParty {
    /// Requests a token of `server`, an API's own authorization server, for the user of this provider's ID token. The
    /// server's issuer is the audience, so that of `target` does not count. Both requests prove this client's DPoP
    /// key, if there is one. A refresh token in the answer is ignored.
    ///
    /// # Errors
    /// Which of the two servers failed, and why.
    pub async fn cross_app_token(
        &self,
        server: &Self,
        id_token: &str,
        target: &TokenTarget<'_>,
        now: u64,
    ) -> Result<RefreshedTokens, CrossAppError> {
        let dpop_key = self.credentials().dpop_key;
        let thumbprint = dpop_key.as_ref().map(DpopKey::thumbprint);
        let assertion = self.request_assertion(server, id_token, target, now).await;
        let assertion = assertion.map_err(CrossAppError::Provider)?;
        let claims = self.check_assertion(&assertion, &server.settings, thumbprint, now);
        let claims = claims.map_err(|wrong| CrossAppError::Provider(GrantError::Unusable(wrong)))?;
        let redeemed = server.bound_to(dpop_key).redeem(&assertion, now).await;
        let tokens = redeemed.map_err(CrossAppError::Server)?;
        // An absent scope is the requested one: that of the assertion (RFC 6749, section 5.1).
        let asserted = claims.get("scope").and_then(Value::as_str).map(str::to_owned);
        Ok(RefreshedTokens {
            scope: tokens.scope.or(asserted),
            refresh_token: None,
            id_token: None,
            ..tokens
        })
    }

    /// The token exchange at this provider (section 4.3 of the draft).
    async fn request_assertion(
        &self,
        server: &Self,
        id_token: &str,
        target: &TokenTarget<'_>,
        now: u64,
    ) -> Result<String, GrantError> {
        let target = TokenTarget {
            audience: Some(&server.settings.issuer),
            ..*target
        };
        let fields = [
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token", id_token),
            ("subject_token_type", ID_TOKEN),
        ];
        let fields: Vec<_> = fields.into_iter().chain(target.fields()).collect();
        let answer = self.request_token(&fields, now).await?;
        grant::assertion_answer(&answer, &self.settings)
    }

    /// The claims of an assertion that `server` has to accept (sections 3.1 and 8.6 of the draft). `sub` is the
    /// user's identifier at the server, and may differ from the one here.
    fn check_assertion(
        &self,
        raw: &str,
        server: &ProviderSettings,
        thumbprint: Option<&str>,
        now: u64,
    ) -> Result<Map<String, Value>, &'static str> {
        let malformed = |_| "the assertion is malformed";
        let token = UnverifiedToken::parse(raw, &AcceptedAlgorithms::Auto).map_err(malformed)?;
        if !token.has_type() || !token.type_is(&ASSERTION_TYPE) {
            return Err("typ of the assertion is not oauth-id-jag+jwt");
        }
        let claims = token.claims().map_err(malformed)?;
        let checks = ClaimChecks::new(&claims, &self.settings, now);
        let issuer = checks.issuer_of(&self.settings, false);
        issuer.map_err(|_| "iss of the assertion is not the provider")?;
        checks.subject().map_err(|_| "the assertion has no sub")?;
        let valid = checks.validity().and_then(|_exp| checks.issued_at());
        valid.map_err(|_| "the assertion is not valid now")?;
        let audience = match claims.get("aud") {
            Some(Value::Array(all)) if all.len() == 1 => all.first(),
            other => other,
        };
        if audience.and_then(Value::as_str) != Some(server.issuer.as_str()) {
            return Err("aud of the assertion is not the API's authorization server alone");
        }
        if checks.text("client_id") != Some(&server.client_id) {
            return Err("client_id of the assertion is not the client at the API's authorization server");
        }
        // A provider that ignores proofs binds nothing. The token of the server is bound all the same.
        let bound = claims.get("cnf").and_then(|cnf| cnf.get("jkt"));
        if bound.is_some() && bound.and_then(Value::as_str) != thumbprint {
            return Err("the assertion is bound to another DPoP key");
        }
        Ok(claims)
    }

    /// The same client of the same server, with tokens bound to this key.
    fn bound_to(&self, dpop_key: Option<DpopKey>) -> Self {
        let mut settings = ProviderSettings::clone(&self.settings);
        settings.credentials.dpop_key.clone_from(&dpop_key);
        let access = self.access.load().bound_to(dpop_key);
        Self {
            settings: Arc::new(settings),
            access: Arc::new(ArcSwap::from_pointee(access)),
            ..self.clone()
        }
    }

    /// The grant at an API's authorization server (section 4.4 of the draft).
    async fn redeem(&self, assertion: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        let fields = [("grant_type", JWT_BEARER), ("assertion", assertion)];
        let answer = self.request_token(&fields, now).await?;
        grant::refresh_answer(&answer, &self.settings, now)
    }
}
