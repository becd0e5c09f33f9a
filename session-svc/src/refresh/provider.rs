//! The calls a refresh makes to an identity provider, and which provider gets them.
//!
//! Invariant: where there are several, a token is shown to the issuer of its session and to nobody else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oidc::{
    ExpectedOfRefresh, IdToken, IdTokenError, ProviderError, RefreshError, RefreshedTokens, RelyingParty,
    Revoked, TokenHint,
};

/// How long callers wait for a provider that does not say: what `OIDC_HTTP_TIMEOUT_MS` is unless it is set.
const DEFAULT_WAIT_LIMIT: Duration = Duration::from_secs(5);

/// The three calls the session service makes to a provider; times are seconds since the Unix epoch.
#[async_trait]
pub trait RefreshProvider: Send + Sync + 'static {
    /// How long a caller waits for new tokens at most, everything included. The exchange may take longer.
    fn wait_limit(&self) -> Duration {
        DEFAULT_WAIT_LIMIT
    }

    /// Exchanges a refresh token (RFC 6749, section 6).
    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, RefreshError>;

    /// Validates the ID token of a refresh (OpenID Connect Core, section 12.2).
    async fn validate(
        &self,
        raw: &str,
        expected: &ExpectedOfRefresh<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError>;

    /// Takes a refresh token back (RFC 7009).
    async fn revoke(&self, refresh_token: &str, now: u64) -> Result<Revoked, ProviderError>;
}

#[async_trait]
impl RefreshProvider for RelyingParty {
    fn wait_limit(&self) -> Duration {
        self.settings().http_timeout
    }

    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, RefreshError> {
        Self::refresh(self, refresh_token, now).await
    }

    async fn validate(
        &self,
        raw: &str,
        expected: &ExpectedOfRefresh<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        self.validate_refreshed_id_token(raw, expected, now).await
    }

    async fn revoke(&self, refresh_token: &str, now: u64) -> Result<Revoked, ProviderError> {
        Self::revoke(self, refresh_token, TokenHint::RefreshToken, now).await
    }
}

#[async_trait]
impl<P: RefreshProvider + ?Sized> RefreshProvider for Arc<P> {
    fn wait_limit(&self) -> Duration {
        self.as_ref().wait_limit()
    }

    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, RefreshError> {
        self.as_ref().refresh(refresh_token, now).await
    }

    async fn validate(
        &self,
        raw: &str,
        expected: &ExpectedOfRefresh<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        self.as_ref().validate(raw, expected, now).await
    }

    async fn revoke(&self, refresh_token: &str, now: u64) -> Result<Revoked, ProviderError> {
        self.as_ref().revoke(refresh_token, now).await
    }
}

/// The provider of each session. Clones share everything.
#[derive(Clone)]
pub enum RefreshProviders {
    /// One for every session.
    Only(Arc<dyn RefreshProvider>),
    /// Each for the sessions of its own issuer.
    Each(Arc<HashMap<String, Arc<dyn RefreshProvider>>>),
}

impl RefreshProviders {
    /// Those that a file lists, or the one of the plain variables.
    #[must_use]
    pub fn of_parties(listed: bool, parties: Vec<RelyingParty>) -> Self {
        let mut each: HashMap<String, Arc<dyn RefreshProvider>> = HashMap::new();
        for party in parties {
            if !listed {
                return Self::Only(Arc::new(party));
            }
            each.insert(party.settings().issuer.clone(), Arc::new(party));
        }
        Self::Each(Arc::new(each))
    }

    /// How long a caller waits for tokens of this issuer.
    pub(super) fn wait_limit(&self, issuer: &str) -> Duration {
        self.of(issuer)
            .map_or(DEFAULT_WAIT_LIMIT, |provider| provider.wait_limit())
    }

    /// The provider a session of this issuer came from; `None` when it is not configured any more.
    pub(super) fn of(&self, issuer: &str) -> Option<&Arc<dyn RefreshProvider>> {
        match self {
            Self::Only(provider) => Some(provider),
            Self::Each(each) => each.get(issuer),
        }
    }
}

impl<P: RefreshProvider> From<P> for RefreshProviders {
    fn from(only: P) -> Self {
        Self::Only(Arc::new(only))
    }
}
