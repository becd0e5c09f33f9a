//! Signed tokens of the provider: parsing, and verification with the current keys.

use aws_lc_rs::hmac;
use serde_json::{Map, Value};

use super::{ID_TOKEN_TYPES, RelyingParty};
use crate::provider::key_refetch::TokenOrigin;
use crate::tokens::jws::UnverifiedToken;
use crate::{
    AcceptedAlgorithms, ExpectedRefreshedIdToken, IdToken, IdTokenError, Metadata, SigningAlgorithm,
};

impl RelyingParty {
    /// Validates the ID token of a refresh: same user, same provider (OpenID Connect Core 12.2). It checks claims
    /// before the signature, so that another user's token is rejected even if the keys are unavailable.
    ///
    /// # Errors
    /// If [`IdTokenError::is_undecided`], there is no verdict: retry with the token later.
    pub async fn validate_refreshed_id_token(
        &self,
        raw: &str,
        expected: &ExpectedRefreshedIdToken<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        let token = self.parsed(raw, &ID_TOKEN_TYPES)?;
        let claims = (token.claims()?, token.algorithm);
        let id_token = IdToken::of_refresh(claims, &self.settings, expected, now)?;
        self.verify(&token, TokenUse::Id, TokenOrigin::Background).await?;
        Ok(id_token)
    }

    /// The claims and the algorithm of a verified token, while a user waits.
    pub(super) async fn verified_claims(
        &self,
        raw: &str,
        used: TokenUse,
        types: &[&str],
    ) -> Result<(Map<String, Value>, SigningAlgorithm), IdTokenError> {
        let token = self.parsed(raw, types)?;
        self.verify(&token, used, TokenOrigin::Interactive).await?;
        Ok((token.claims()?, token.algorithm))
    }

    /// Parses a token of one of these types without verifying it.
    fn parsed<'a>(&self, raw: &'a str, types: &[&str]) -> Result<UnverifiedToken<'a>, IdTokenError> {
        let token = UnverifiedToken::parse(raw, &self.settings.signing_algs)?;
        match &token.typ {
            Some(typ) if !token.type_is(types) => Err(IdTokenError::of_type(typ)),
            _ => Ok(token),
        }
    }

    /// Verifies the signature of a token from an unauthenticated sender with the issuer's keys.
    ///
    /// # Errors
    /// [`IdTokenError::is_undecided`] says whether there is no verdict.
    pub async fn verify_signature(&self, token: &UnverifiedToken<'_>) -> Result<(), IdTokenError> {
        self.verify_by_published_key(token, TokenOrigin::Unauthenticated)
            .await
    }

    /// Verifies with the provider's keys, regardless of the ID tokens' algorithm.
    pub(super) async fn verify_by_published_key(
        &self,
        token: &UnverifiedToken<'_>,
        origin: TokenOrigin,
    ) -> Result<(), IdTokenError> {
        let access = self.access.load_full();
        self.cache.verify(&access.http, token, origin).await
    }

    /// Verifies with the provider's keys, or with the client secret if such an algorithm is configured.
    pub(super) async fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        used: TokenUse,
        origin: TokenOrigin,
    ) -> Result<(), IdTokenError> {
        let Some(algorithm) = token.algorithm.hmac() else {
            self.check_algorithm(token.algorithm, used, origin).await?;
            return self.verify_by_published_key(token, origin).await;
        };
        let access = self.access.load();
        let secret = access.credentials.auth.secret().ok_or(IdTokenError::UnknownKey)?;
        let key = hmac::Key::new(algorithm, secret.secret().as_bytes());
        hmac::verify(&key, token.signed, &token.signature).map_err(|_| IdTokenError::Signature)
    }

    /// Whether the settings name the algorithm, or the provider's metadata list it. Stale metadata are
    /// fetched again. An unlisted algorithm is no verdict, except for a sign-in, which cannot wait.
    async fn check_algorithm(
        &self,
        algorithm: SigningAlgorithm,
        used: TokenUse,
        origin: TokenOrigin,
    ) -> Result<(), IdTokenError> {
        let auto = match &self.settings.signing_algs {
            AcceptedAlgorithms::Named(_) => return Ok(()), // `parse` rejected others
            auto @ AcceptedAlgorithms::Auto => auto,
        };
        let lists = |metadata: &Metadata| auto.shared_with(used.listed(metadata)).contains(&algorithm);
        if lists(&*self.metadata().await?) {
            return Ok(());
        }
        let access = self.access.load_full();
        if lists(&*self.cache.metadata_anew(&access.http, origin).await?) {
            return Ok(());
        }
        match origin {
            TokenOrigin::Interactive => Err(IdTokenError::Algorithm),
            TokenOrigin::Background | TokenOrigin::Unauthenticated => Err(IdTokenError::UnknownKey),
        }
    }
}

/// The use of a signed token.
#[derive(Clone, Copy, Debug)]
pub(super) enum TokenUse {
    /// An ID token, or a logout token, which is signed like one (Back-Channel Logout 1.0, section 2.4).
    Id,
    /// Userinfo.
    Userinfo,
}

impl TokenUse {
    /// The algorithms in the metadata. Without a list for userinfo, providers use the one of ID tokens.
    fn listed(self, metadata: &Metadata) -> &[String] {
        match self {
            Self::Userinfo if !metadata.userinfo_signing_algs.is_empty() => &metadata.userinfo_signing_algs,
            Self::Id | Self::Userinfo => &metadata.id_token_signing_algs,
        }
    }
}
