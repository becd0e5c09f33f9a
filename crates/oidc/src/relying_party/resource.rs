//! Validates the provider's access tokens for a resource (RFC 9068, RFC 7662, or the provider's own shape).

use super::RelyingParty;
use crate::grants::grant;
use crate::grants::introspection;
use crate::provider::http_client::INTROSPECTION_ENDPOINT;
use crate::provider::key_refetch::TokenOrigin;
use crate::tokens::access_token::{self, MAX_ACCESS_TOKEN_BYTES, VerifiedAccessToken};
use crate::{AccessTokenError, IdTokenError, ProviderError};

impl RelyingParty {
    /// Validates a JWT access token for a resource with these audiences (RFC 9068 section 4), or for one that
    /// accepts these clients' tokens without `aud`. Call [`VerifiedAccessToken::check`] for each request.
    ///
    /// # Errors
    /// [`AccessTokenError::Provider`] is no verdict.
    pub async fn validate_access_token(
        &self,
        raw: &str,
        is_audience: impl Fn(&str) -> bool,
        clients: &[String],
        now: u64,
    ) -> Result<VerifiedAccessToken, AccessTokenError> {
        let unverified = access_token::parse(raw, self.settings.access_tokens)?;
        // Before the signature check, so that an invalid token costs no verification and no key fetch.
        let token = VerifiedAccessToken::of_jwt(unverified.claims()?, &self.settings)?;
        token.check(is_audience, clients, now)?;
        self.verify_by_published_key(&unverified, TokenOrigin::Unauthenticated)
            .await?;
        Ok(token)
    }

    /// Introspects a token at the provider (RFC 7662), as this client.
    ///
    /// # Errors
    /// [`AccessTokenError::Provider`] is no verdict; all others are.
    pub async fn introspect(&self, raw: &str, now: u64) -> Result<VerifiedAccessToken, AccessTokenError> {
        if raw.len() > MAX_ACCESS_TOKEN_BYTES {
            return Err(IdTokenError::Malformed.into());
        }
        let endpoint = INTROSPECTION_ENDPOINT;
        let metadata = self
            .metadata_with(|metadata| metadata.introspection_endpoint.is_some())
            .await?;
        let missing = ProviderError::MissingEndpoint(endpoint);
        let url = metadata.introspection_endpoint.as_ref().ok_or(missing)?;
        let fields = [("token", raw), ("token_type_hint", "access_token")];
        let answer = self.post(&metadata, (endpoint, url), &fields, now).await?;
        if answer.status != 200 {
            return Err(grant::refused(&answer, &self.settings).into());
        }
        let Some(raw) = answer.compact_jws() else {
            return introspection::token(introspection::plain(&answer)?, &self.settings);
        };
        let signed = introspection::signed(raw)?;
        // A faulty answer is no verdict on the token.
        let verified = self.verify_by_published_key(&signed, TokenOrigin::Background);
        verified.await.map_err(introspection::unverified)?;
        let claims = signed.claims().map_err(introspection::unverified)?;
        let said = introspection::said_to_us(claims, &self.settings)?;
        introspection::token(said, &self.settings)
    }
}
