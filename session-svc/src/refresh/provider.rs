//! What a refresh asks of an identity provider.

use async_trait::async_trait;
use oidc::{
    IdToken, IdTokenError, ProviderError, RefreshError, RefreshedTokens, RelyingParty, Revoked, TokenHint,
};

/// The three things the session service asks of a provider; times are seconds since the Unix epoch.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// Exchanges a refresh token (RFC 6749, section 6).
    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, RefreshError>;

    /// Checks the ID token of a refresh (OpenID Connect Core, section 12.2).
    async fn check(&self, raw: &str, iss: &str, sub: &str, now: u64) -> Result<IdToken, IdTokenError>;

    /// Takes a refresh token back (RFC 7009).
    async fn revoke(&self, refresh_token: &str, now: u64) -> Result<Revoked, ProviderError>;
}

#[async_trait]
impl Provider for RelyingParty {
    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, RefreshError> {
        Self::refresh(self, refresh_token, now).await
    }

    async fn check(&self, raw: &str, iss: &str, sub: &str, now: u64) -> Result<IdToken, IdTokenError> {
        self.validate_refreshed_id_token(raw, iss, sub, now).await
    }

    async fn revoke(&self, refresh_token: &str, now: u64) -> Result<Revoked, ProviderError> {
        Self::revoke(self, refresh_token, TokenHint::RefreshToken, now).await
    }
}

#[async_trait]
impl<P: Provider + ?Sized> Provider for std::sync::Arc<P> {
    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, RefreshError> {
        self.as_ref().refresh(refresh_token, now).await
    }

    async fn check(&self, raw: &str, iss: &str, sub: &str, now: u64) -> Result<IdToken, IdTokenError> {
        self.as_ref().check(raw, iss, sub, now).await
    }

    async fn revoke(&self, refresh_token: &str, now: u64) -> Result<Revoked, ProviderError> {
        self.as_ref().revoke(refresh_token, now).await
    }
}
