//! Signed tokens of the provider: parsed, and verified by the keys in force.

use openidconnect::JwsSigningAlgorithm as _;
use serde_json::{Map, Value};

use super::{ID_TOKEN_TYPES, RelyingParty};
use crate::jws::Unverified;
use crate::key_refetch::TokenOrigin;
use crate::key_set::{KeySet, SignatureVerdict};
use crate::{ExpectedOfRefresh, IdToken, IdTokenError};

impl RelyingParty {
    /// Validates the ID token of a refresh: the same person at the same provider (OpenID Connect Core 12.2). Its claims are
    /// validated before its signature, so that a token of somebody else is refused even while the keys cannot be had.
    ///
    /// # Errors
    /// Where [`IdTokenError::is_undecided`] says so it is no verdict: the token is to be shown again later.
    pub async fn validate_refreshed_id_token(
        &self,
        raw: &str,
        expected: &ExpectedOfRefresh<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        let token = self.parsed(raw, &ID_TOKEN_TYPES)?;
        let id_token = IdToken::of_refresh(token.claims()?, &self.settings, expected, now)?;
        self.verify(&token, TokenOrigin::Background).await?;
        Ok(id_token)
    }

    /// The claims of a token somebody waits for, once its signature verified.
    pub(super) async fn verified_claims(
        &self,
        raw: &str,
        types: &[&str],
    ) -> Result<Map<String, Value>, IdTokenError> {
        let token = self.parsed(raw, types)?;
        self.verify(&token, TokenOrigin::Interactive).await?;
        token.claims()
    }

    /// Parses a token of these types; nothing of it is verified.
    fn parsed<'a>(&self, raw: &'a str, types: &[&str]) -> Result<Unverified<'a>, IdTokenError> {
        let token = Unverified::parse(raw, self.settings.id_token_alg)?;
        if !token.type_is(types) {
            return Err(IdTokenError::Header);
        }
        Ok(token)
    }

    /// Verifies by the provider's keys, or by the client secret.
    pub(super) async fn verify(
        &self,
        token: &Unverified<'_>,
        origin: TokenOrigin,
    ) -> Result<(), IdTokenError> {
        let access = self.access.load_full();
        if !self.settings.id_token_alg.uses_shared_secret() {
            return self
                .cache
                .verify(&access.http, &self.settings, token, origin)
                .await;
        }
        let secret = access.auth().secret().ok_or(IdTokenError::UnknownKey)?;
        match KeySet::symmetric(secret.secret().as_bytes()).verify(token) {
            SignatureVerdict::Verified => Ok(()),
            SignatureVerdict::NoSuchKey | SignatureVerdict::BadSignature => Err(IdTokenError::Signature),
        }
    }
}
