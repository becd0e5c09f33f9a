//! Requests to the provider that prove something: who this client is, or that it holds the key a token is bound to.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use crate::dpop::{Nonces, Request};
use crate::http_client::{HttpClient, ProviderResponse};
use crate::{
    AssertionAudience, BuildError, ClientAuth, ClientSecret, Credentials, Metadata, ProviderError,
    ProviderSettings, random,
};

/// Where tokens are issued, and so where the key is shown that they are bound to.
pub(crate) const TOKEN_ENDPOINT: &str = "token_endpoint";

/// What is replaced as a whole when credentials change.
pub(crate) struct Access {
    pub(crate) http: HttpClient,
    pub(crate) credentials: Credentials,
    settings: Arc<ProviderSettings>,
}

impl Access {
    pub(crate) fn new(
        settings: &Arc<ProviderSettings>,
        credentials: Credentials,
    ) -> Result<Self, BuildError> {
        let bytes = settings.signing_algs.least_secret_bytes();
        let strong = |secret: &ClientSecret| secret.secret().len() >= bytes;
        if bytes > 0 && !credentials.auth.secret().is_some_and(strong) {
            return Err(BuildError::SymmetricSecret { bytes });
        }
        Ok(Self {
            http: HttpClient::new(settings, &credentials)?,
            credentials,
            settings: Arc::clone(settings),
        })
    }

    pub(crate) fn auth(&self) -> &ClientAuth {
        &self.credentials.auth
    }

    /// Whom an assertion is for, when it is sent to a provider with this token endpoint.
    fn assertion_audience<'a>(&'a self, token_endpoint: &'a Url) -> &'a str {
        match self.settings.assertion_audience {
            AssertionAudience::Issuer => &self.settings.issuer,
            AssertionAudience::TokenEndpoint => token_endpoint.as_str(),
        }
    }

    /// Posts a form as this client, within `timeout` in all. A server that only wants its nonce repeated gets it, once; the
    /// assertion is a new one each time, since it is used once too.
    pub(crate) async fn post(
        &self,
        nonces: &Nonces,
        metadata: &Metadata,
        (endpoint, url): (&'static str, &Url),
        fields: &[(&str, &str)],
        now: u64,
        timeout: Duration,
    ) -> Result<ProviderResponse, ProviderError> {
        let began = Instant::now();
        let audience = self.assertion_audience(&metadata.token_endpoint);
        let auth = self
            .auth()
            .for_methods(&metadata.token_endpoint_auth_methods)
            .signing_by(&metadata.token_endpoint_auth_signing_algs);
        let mut repeated = false;
        loop {
            let token_id = random::token().map_err(|_| ProviderError::ClientAssertion)?;
            let proof = auth
                .prove(&self.settings.client_id, audience, &token_id, now)
                .map_err(|_| ProviderError::ClientAssertion)?;
            let bound = endpoint == TOKEN_ENDPOINT;
            let dpop = if bound {
                self.dpop_proof(nonces, "POST", url, None, now)?
            } else {
                None
            };
            let left = timeout.saturating_sub(began.elapsed());
            let answer = self
                .http
                .post_form(endpoint, url, proof, fields, left, dpop.as_deref())
                .await?;
            if learned(nonces, url, &answer) && dpop.is_some() && answer.wants_nonce() && !repeated {
                repeated = true;
                continue;
            }
            return Ok(answer);
        }
    }

    /// Gets a resource with an access token, as its type demands.
    pub(crate) async fn get_with_token(
        &self,
        nonces: &Nonces,
        endpoint: &'static str,
        url: &Url,
        (token_type, access_token): (&str, &str),
        now: u64,
    ) -> Result<ProviderResponse, ProviderError> {
        let bound = token_type.eq_ignore_ascii_case("DPoP");
        let mut repeated = false;
        loop {
            let dpop = if bound {
                let proof = self.dpop_proof(nonces, "GET", url, Some(access_token), now)?;
                Some(proof.ok_or(ProviderError::ClientAssertion)?)
            } else {
                None
            };
            let answer = self
                .http
                .get_with_token(endpoint, url, access_token, dpop.as_deref())
                .await?;
            if learned(nonces, url, &answer) && bound && answer.wants_nonce() && !repeated {
                repeated = true;
                continue;
            }
            return Ok(answer);
        }
    }

    /// A proof for one request; `None` when tokens are not bound.
    pub(crate) fn dpop_proof(
        &self,
        nonces: &Nonces,
        method: &str,
        url: &Url,
        access_token: Option<&str>,
        now: u64,
    ) -> Result<Option<String>, ProviderError> {
        let Some(key) = &self.credentials.dpop_key else {
            return Ok(None);
        };
        let nonce = nonces.get(url);
        let request = Request {
            method,
            url,
            access_token,
            nonce: nonce.as_deref(),
            now,
        };
        key.proof(&request)
            .map(Some)
            .map_err(|_| ProviderError::ClientAssertion)
    }
}

fn learned(nonces: &Nonces, url: &Url, answer: &ProviderResponse) -> bool {
    answer
        .dpop_nonce
        .as_ref()
        .is_some_and(|nonce| nonces.learn(url, nonce))
}
