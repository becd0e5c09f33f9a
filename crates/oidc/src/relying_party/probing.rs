//! Requests that find out whether settings fit the provider. None of them signs anybody in, and each is bounded as every
//! exchange with the provider is.

use openidconnect::RedirectUrl;
use reqwest::header::{AGE, DATE, LOCATION};
use tokio::time::Instant;
use url::Url;

use super::RelyingParty;
use crate::grants::access::TOKEN_ENDPOINT;
use crate::provider::metadata::DISCOVERY_DOCUMENT;
use crate::provider::probe::{
    AuthorizationProbe, ClientVerdict, DiscoveryProbe, KeySetProbe, clock_offset_secs,
};
use crate::{
    AuthorizationRequest, BuildError, EndSessionRequest, GrantError, Par, ProviderError, ProviderSettings,
    ResponseMode, SigningFailed, random,
};

/// A code and a refresh token that no provider has given to anybody.
const NOBODYS_GRANT: &str = "vestibule-doctor-not-a-grant";

impl RelyingParty {
    /// The same client with other settings and caches of its own, for a try.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn with_settings(&self, change: impl FnOnce(&mut ProviderSettings)) -> Result<Self, BuildError> {
        let mut settings = ProviderSettings::clone(&self.settings);
        settings.credentials = self.credentials();
        change(&mut settings);
        Self::new(settings)
    }

    /// Asks for the discovery document, past the cache. `now` is in seconds since the Unix epoch.
    pub async fn probe_discovery(&self, now: u64) -> Option<DiscoveryProbe> {
        let url = self.settings.metadata_address()?;
        let access = self.access.load_full();
        let began = Instant::now();
        let answer = access.http.get(DISCOVERY_DOCUMENT, &url).await;
        let took = began.elapsed();
        let header = |name| answer.as_ref().ok()?.header(name);
        let (location, date) = (header(LOCATION).map(str::to_owned), header(DATE));
        let clock_offset_secs = date.and_then(|date| clock_offset_secs(date, header(AGE), now, took));
        let certificate = answer.as_ref().ok().and_then(|answer| answer.certificate.clone());
        let document = answer.and_then(|answer| answer.document());
        Some(DiscoveryProbe {
            url,
            document: document.map(|document| self.settings.with_configured_endpoints(document)),
            location,
            clock_offset_secs,
            certificate,
        })
    }

    /// Asks for the keys at `url`, past the cache.
    ///
    /// # Errors
    /// No usable answer.
    pub async fn probe_keys(&self, url: &Url) -> Result<KeySetProbe, ProviderError> {
        let response = self.access.load_full().http.get("jwks_uri", url).await?;
        KeySetProbe::new(&response.document()?).ok_or_else(|| response.malformed())
    }

    /// Shows the token endpoint a code that nobody was given: it has to believe the client before it can refuse the code.
    ///
    /// # Errors
    /// No answer, or none that says anything.
    pub async fn probe_client_by_code(
        &self,
        redirect_uri: &str,
        now: u64,
    ) -> Result<ClientVerdict, ProviderError> {
        verdict(
            self.exchange_code(NOBODYS_GRANT, &random::token(), redirect_uri, now)
                .await,
        )
    }

    /// The same by a refresh token that nobody was given.
    ///
    /// # Errors
    /// No answer, or none that says anything.
    pub async fn probe_client_by_refresh(&self, now: u64) -> Result<ClientVerdict, ProviderError> {
        verdict(self.refresh(NOBODYS_GRANT, now).await)
    }

    /// Sends a request for a sign-in in which nobody may be asked anything, pushed first where sign-ins are, and gives what
    /// becomes of it.
    ///
    /// # Errors
    /// A pushed request that was refused ([`ProviderError::Refused`]), or no answer.
    pub async fn probe_authorization(
        &self,
        redirect_uri: &RedirectUrl,
        now: u64,
    ) -> Result<AuthorizationProbe, ProviderError> {
        let metadata = self.metadata().await?;
        // A form that a browser would post says nothing to us; where the answer goes is judged before how. A request that cannot be
        // pushed where the provider offers it is what the doctor looks for.
        let asking = self
            .with_settings(|settings| {
                settings.response_mode = ResponseMode::Query;
                if settings.par == Par::Auto && metadata.pushed_authorization_request_endpoint.is_some() {
                    settings.par = Par::Require;
                }
            })
            .map_err(|_| SigningFailed)?;
        let (state, nonce, verifier) = (random::token(), random::token(), random::token());
        let request = AuthorizationRequest {
            redirect_uri,
            state: &state,
            nonce: &nonce,
            verifier: &verifier,
            extra: &[("prompt".to_owned(), "none".to_owned())],
            max_age: None,
            must_ask: false,
            now,
        };
        let url = asking.authorization_url(&request).await?;
        let access = asking.access.load_full();
        let page = access.http.get_page("authorization_endpoint", &url).await?;
        let location = page.header(LOCATION);
        Ok(AuthorizationProbe::of(page.status, location, redirect_uri))
    }

    /// The status of the page where a browser that nobody is signed in with would land to sign out: whether the provider takes
    /// the post-logout redirect URI, if it judges it without a hint. `None` where there is no such endpoint.
    ///
    /// # Errors
    /// No answer.
    pub async fn probe_end_session(
        &self,
        post_logout_redirect_uri: &str,
    ) -> Result<Option<u16>, ProviderError> {
        let request = EndSessionRequest {
            post_logout_redirect_uri: Some(post_logout_redirect_uri),
            ..EndSessionRequest::default()
        };
        let Some(url) = self.end_session_url(&request).await? else {
            return Ok(None);
        };
        let access = self.access.load_full();
        let page = access.http.get_page("end_session_endpoint", &url).await?;
        Ok(Some(page.status))
    }
}

/// What the answer to a grant that no provider has given to anybody says of the client.
fn verdict<T>(answer: Result<T, GrantError>) -> Result<ClientVerdict, ProviderError> {
    match answer {
        Err(GrantError::Refused(error)) => Ok(error.into()),
        Err(GrantError::Transient(error)) => Err(error),
        // Whoever answers a made-up grant with a success has judged neither it nor the client.
        Ok(_) | Err(GrantError::Unusable(_)) => Err(ProviderError::Malformed(TOKEN_ENDPOINT)),
    }
}
