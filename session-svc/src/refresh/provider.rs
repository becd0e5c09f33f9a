//! The calls of a refresh to an identity provider, and the choice of the provider.
//!
//! Invariant: with several providers, a token is sent only to the issuer of its session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oidc::{
    ApiTokenGrant, ExpectedRefreshedIdToken, GrantError, IdToken, IdTokenError, OAuthError, ProviderError,
    RefreshedTokens, RelyingParty, RevocationResult, TokenHint, TokenTarget,
};

use super::ApiServers;
use crate::session::ApiTokenSource;

/// The error code of a provider that does not support the grant (RFC 6749, section 5.2).
const NOT_OFFERED: &str = "unsupported_grant_type";

/// How long callers wait if the provider gives no limit: the default of `OIDC_HTTP_TIMEOUT_MS`.
const DEFAULT_WAIT_LIMIT: Duration = Duration::from_secs(5);

/// The calls the session service makes to a provider; times are seconds since the Unix epoch.
#[async_trait]
pub trait RefreshProvider: Send + Sync + 'static {
    /// Its issuer identifier, if it is known.
    fn issuer(&self) -> Option<&str> {
        let party = self.relying_party()?;
        Some(&party.settings().issuer)
    }

    /// How long a caller waits for new tokens at most, everything included. The exchange may take longer.
    fn wait_limit(&self) -> Duration {
        DEFAULT_WAIT_LIMIT
    }

    /// Exchanges a refresh token (RFC 6749, section 6).
    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, GrantError>;

    /// Validates the ID token of a refresh (OpenID Connect Core, section 12.2).
    async fn validate(
        &self,
        raw: &str,
        expected: &ExpectedRefreshedIdToken<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError>;

    /// The token type used to request tokens for single APIs.
    fn api_token_source(&self) -> ApiTokenSource {
        ApiTokenSource::AccessToken
    }

    /// Requests a token for an API with the session's token of that source: an exchange (RFC 8693), or a
    /// refresh that names the API (RFC 8707, section 2.2). The default refuses.
    async fn api_token(
        &self,
        _source: &ApiTokenSource,
        _token: &str,
        _target: &TokenTarget<'_>,
        _now: u64,
    ) -> Result<RefreshedTokens, GrantError> {
        Err(GrantError::Refused(OAuthError::new(NOT_OFFERED)))
    }

    /// The client at this provider, which requests assertions for the authorization servers of APIs (ID-JAG).
    fn relying_party(&self) -> Option<&RelyingParty> {
        None
    }

    /// Revokes a token (RFC 7009).
    async fn revoke(&self, token: &str, hint: TokenHint, now: u64)
    -> Result<RevocationResult, ProviderError>;
}

#[async_trait]
impl RefreshProvider for RelyingParty {
    fn wait_limit(&self) -> Duration {
        self.settings().http_timeout
    }

    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        Self::refresh(self, refresh_token, now).await
    }

    async fn validate(
        &self,
        raw: &str,
        expected: &ExpectedRefreshedIdToken<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        self.validate_refreshed_id_token(raw, expected, now).await
    }

    fn api_token_source(&self) -> ApiTokenSource {
        match self.settings().api_token_grant {
            ApiTokenGrant::TokenExchange => ApiTokenSource::AccessToken,
            ApiTokenGrant::Refresh => ApiTokenSource::RefreshToken,
        }
    }

    async fn api_token(
        &self,
        source: &ApiTokenSource,
        token: &str,
        target: &TokenTarget<'_>,
        now: u64,
    ) -> Result<RefreshedTokens, GrantError> {
        match source {
            ApiTokenSource::AccessToken => self.exchange_token(token, target, now).await,
            ApiTokenSource::RefreshToken => self.refresh_for(token, target, now).await,
            // Another server issues the token: `relying_party`.
            ApiTokenSource::IdToken(_) => Err(GrantError::Refused(OAuthError::new(NOT_OFFERED))),
        }
    }

    fn relying_party(&self) -> Option<&RelyingParty> {
        Some(self)
    }

    async fn revoke(
        &self,
        token: &str,
        hint: TokenHint,
        now: u64,
    ) -> Result<RevocationResult, ProviderError> {
        Self::revoke(self, token, hint, now).await
    }
}

/// A provider, and the sessions it refreshes: those of the party's issuer and its tenants; `None` for all.
type ListedProvider = (Option<RelyingParty>, Arc<dyn RefreshProvider>);

/// The providers of sessions, and the authorization servers of APIs. Clones share everything.
#[derive(Clone)]
pub struct RefreshProviders {
    listed: Arc<Vec<ListedProvider>>,
    api_servers: ApiServers,
}

impl RefreshProviders {
    /// Creates the providers from a file's list (`listed`), or the single one from variables.
    #[must_use]
    pub fn of_parties(listed: bool, parties: Vec<RelyingParty>) -> Self {
        let each = parties.into_iter().map(|party| {
            let of_issuer = listed.then(|| party.clone());
            (of_issuer, Arc::new(party) as Arc<dyn RefreshProvider>)
        });
        Self::of_listed(each.collect())
    }

    fn of_listed(listed: Vec<ListedProvider>) -> Self {
        Self {
            listed: Arc::new(listed),
            api_servers: ApiServers::default(),
        }
    }

    /// The same providers, next to these servers of APIs.
    #[must_use]
    pub fn with_api_servers(self, api_servers: ApiServers) -> Self {
        Self { api_servers, ..self }
    }

    pub(super) fn api_servers(&self) -> &ApiServers {
        &self.api_servers
    }

    /// How long a caller waits for tokens of this issuer.
    pub(super) fn wait_limit(&self, issuer: &str) -> Duration {
        self.of(issuer)
            .map_or(DEFAULT_WAIT_LIMIT, |provider| provider.wait_limit())
    }

    /// The issuers, in their configured order.
    pub(crate) fn issuers(&self) -> Vec<String> {
        let issuers = self.listed.iter().filter_map(|(_, provider)| provider.issuer());
        issuers.map(str::to_owned).collect()
    }

    /// The provider of this issuer; `None` if it is not configured any more.
    pub(super) fn of(&self, issuer: &str) -> Option<&Arc<dyn RefreshProvider>> {
        let is_of = |party: &RelyingParty| party.settings().is_issuer(issuer);
        let mut listed = self.listed.iter();
        let found = listed.find(|(party, _)| party.as_ref().is_none_or(is_of));
        found.map(|(_, provider)| provider)
    }
}

impl<P: RefreshProvider> From<P> for RefreshProviders {
    fn from(only: P) -> Self {
        Self::of_listed(vec![(None, Arc::new(only))])
    }
}
