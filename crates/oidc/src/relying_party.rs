//! The relying party: one provider, one client registration.

use std::sync::Arc;

use serde_json::{Map, Value};
use url::Url;

use crate::{
    AuthorizationRequest, BuildError, ClientAuth, EndSessionRequest, Expected, IdToken, IdTokenError,
    LogoutToken, LogoutTokenError, Metadata, ProviderError, ProviderSettings, RefreshError, RefreshedTokens,
    Revoked, TokenError, TokenHint, TokenSet, UserinfoError,
};

/// Speaks to one provider as one client. Clones are cheap and share caches.
#[derive(Clone)]
pub struct RelyingParty {
    settings: Arc<ProviderSettings>,
}

impl RelyingParty {
    /// Prepares without any network; discovery happens when first needed.
    pub fn new(settings: ProviderSettings) -> Result<Self, BuildError> {
        Ok(Self {
            settings: Arc::new(settings),
        })
    }

    /// The settings it was made from.
    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    /// The client credentials in use.
    pub fn client_auth(&self) -> ClientAuth {
        self.settings.client_auth.clone()
    }

    /// Takes over changed client credentials and re-reads certificate files; requests under way go on.
    pub fn reload(&self, client_auth: ClientAuth) -> Result<(), BuildError> {
        let _ = client_auth;
        Ok(())
    }

    /// The provider's metadata, from the cache when fresh, stale when the provider is down.
    pub async fn metadata(&self) -> Result<Arc<Metadata>, ProviderError> {
        Err(ProviderError::IssuerMismatch)
    }

    /// Where to send the browser for a login.
    pub async fn authorization_url(&self, request: &AuthorizationRequest<'_>) -> Result<Url, ProviderError> {
        let _ = request;
        Err(ProviderError::IssuerMismatch)
    }

    /// Exchanges an authorization code (OpenID Connect Core 3.1.3).
    pub async fn exchange_code(
        &self,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
        now: u64,
    ) -> Result<TokenSet, TokenError> {
        let _ = (code, verifier, redirect_uri, now);
        Err(ProviderError::IssuerMismatch.into())
    }

    /// Validates the ID token of a login (OpenID Connect Core 3.1.3.7).
    pub async fn validate_id_token(
        &self,
        raw: &str,
        expected: &Expected<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        let _ = (raw, expected, now);
        Err(ProviderError::IssuerMismatch.into())
    }

    /// Validates the ID token of a refresh: the same person at the same provider (OpenID Connect Core 12.2).
    pub async fn validate_refreshed_id_token(
        &self,
        raw: &str,
        iss: &str,
        sub: &str,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        let _ = (raw, iss, sub, now);
        Err(ProviderError::IssuerMismatch.into())
    }

    /// Reads userinfo about `expected_sub`, without claims only the ID token may make (OpenID Connect Core 5.3).
    pub async fn userinfo(
        &self,
        access_token: &str,
        expected_sub: &str,
    ) -> Result<Map<String, Value>, UserinfoError> {
        let _ = (access_token, expected_sub);
        Err(ProviderError::IssuerMismatch.into())
    }

    /// Exchanges a refresh token (RFC 6749 section 6).
    pub async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, RefreshError> {
        let _ = (refresh_token, now);
        Err(RefreshError::Transient(ProviderError::IssuerMismatch))
    }

    /// Revokes a token (RFC 7009).
    pub async fn revoke(&self, token: &str, hint: TokenHint, now: u64) -> Result<Revoked, ProviderError> {
        let _ = (token, hint, now);
        Err(ProviderError::IssuerMismatch)
    }

    /// Where to send the browser to end the provider's session too; `None` when the provider offers no such place.
    pub async fn end_session_url(
        &self,
        request: &EndSessionRequest<'_>,
    ) -> Result<Option<Url>, ProviderError> {
        let _ = request;
        Err(ProviderError::IssuerMismatch)
    }

    /// The `/v2/logout` address of an Auth0-style provider; needs no metadata.
    pub fn auth0_logout_url(&self, return_to: &str) -> Option<Url> {
        let _ = return_to;
        None
    }

    /// Validates a logout token; the caller guards against replays (Back-Channel Logout 2.6).
    pub async fn validate_logout_token(&self, raw: &str, now: u64) -> Result<LogoutToken, LogoutTokenError> {
        let _ = (raw, now);
        Err(LogoutTokenError::Provider(ProviderError::IssuerMismatch))
    }
}
