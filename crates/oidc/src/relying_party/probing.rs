//! Requests that check whether settings fit the provider. None of them signs a user in, and each has the
//! usual bounds.

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

/// A made-up code or refresh token, which no provider issued.
const NOBODYS_GRANT: &str = "vestibule-doctor-not-a-grant";

impl RelyingParty {
    /// The same client with changed settings and its own caches, for a test.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub fn with_settings(&self, change: impl FnOnce(&mut ProviderSettings)) -> Result<Self, BuildError> {
        let mut settings = ProviderSettings::clone(&self.settings);
        settings.credentials = self.credentials();
        change(&mut settings);
        Self::new(settings)
    }

    /// Requests the discovery document, without the cache. `now` is in seconds since the Unix epoch.
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

    /// Requests the keys at `url`, without the cache.
    ///
    /// # Errors
    /// No usable answer.
    pub async fn probe_keys(&self, url: &Url) -> Result<KeySetProbe, ProviderError> {
        let response = self.access.load_full().http.get("jwks_uri", url).await?;
        KeySetProbe::new(&response.document()?).ok_or_else(|| response.malformed())
    }

    /// Sends a made-up code to the token endpoint, which must accept the client before it can reject the
    /// code.
    ///
    /// # Errors
    /// No answer, or one without a verdict.
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

    /// Does the same with a made-up refresh token.
    ///
    /// # Errors
    /// No answer, or one without a verdict.
    pub async fn probe_client_by_refresh(&self, now: u64) -> Result<ClientVerdict, ProviderError> {
        verdict(self.refresh(NOBODYS_GRANT, now).await)
    }

    /// Sends a sign-in request with `prompt=none`, pushed if sign-ins are, and returns the result.
    ///
    /// # Errors
    /// The pushed request was refused ([`ProviderError::Refused`]), or there was no answer.
    pub async fn probe_authorization(
        &self,
        redirect_uri: &RedirectUrl,
        now: u64,
    ) -> Result<AuthorizationProbe, ProviderError> {
        let metadata = self.metadata().await?;
        // Mode `query`: the probe cannot read an answer in a form, and the provider checks the redirect URI first.
        // `Par::Require`: the doctor must see a failed push, and not continue without it.
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
            needs_account_prompt: false,
            now,
        };
        let url = asking.authorization_url(&request).await?;
        let access = asking.access.load_full();
        let page = access.http.get_page("authorization_endpoint", &url).await?;
        let location = page.header(LOCATION);
        Ok(AuthorizationProbe::of(page.status, location, redirect_uri))
    }

    /// The status of the sign-out page for a browser without a session. It shows whether the provider accepts
    /// the post-logout redirect URI, if it checks that without a hint. `None` without such an endpoint.
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

/// What the answer to a made-up grant says about the client.
fn verdict<T>(answer: Result<T, GrantError>) -> Result<ClientVerdict, ProviderError> {
    match answer {
        Err(GrantError::Refused(error)) => Ok(error.into()),
        Err(GrantError::Transient(error)) => Err(error),
        // A provider that accepts a made-up grant has checked neither the grant nor the client.
        Ok(_) | Err(GrantError::Unusable(_)) => Err(ProviderError::Malformed(TOKEN_ENDPOINT)),
    }
}
