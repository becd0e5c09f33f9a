//! Requests to the provider that authenticate this client or prove possession of a token's key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use crate::client::client_auth::{ASSERTION_FORMS, AssertionAlgorithm, AssertionAudience};
use crate::client::dpop::{Nonces, Request};
use crate::provider::http_client::{DPOP_NONCE, HttpClient, ProviderResponse};
use crate::{
    BuildError, ClientAuth, ClientSecret, Credentials, DpopKey, Metadata, ProviderError, ProviderSettings,
    SigningFailed, random,
};

/// The endpoint that issues tokens, and so the one that receives DPoP proofs for binding them.
pub(crate) const TOKEN_ENDPOINT: &str = "token_endpoint";

/// State that is replaced as a whole when credentials change.
pub(crate) struct Access {
    pub(crate) http: HttpClient,
    pub(crate) credentials: Credentials,
    pub(crate) nonces: Arc<Nonces>,
    /// Index in [`ASSERTION_FORMS`] of the form that the provider accepted last.
    accepted_form: Arc<AtomicUsize>,
}

impl Access {
    pub(crate) fn new(
        settings: &Arc<ProviderSettings>,
        credentials: Credentials,
    ) -> Result<Self, BuildError> {
        let bytes = settings.signing_algs.least_secret_bytes();
        let strong = |secret: &ClientSecret| secret.secret().len() >= bytes;
        if bytes > 0 && !credentials.auth.secret().is_some_and(strong) {
            return Err(BuildError::SymmetricSecret(bytes));
        }
        Ok(Self {
            http: HttpClient::new(settings, &credentials)?,
            credentials,
            nonces: Arc::default(),
            accepted_form: Arc::default(),
        })
    }

    /// The same access, with tokens bound to this key; clones share what they learn from the server.
    pub(crate) fn bound_to(&self, dpop_key: Option<DpopKey>) -> Self {
        Self {
            http: self.http.clone(),
            credentials: Credentials {
                dpop_key,
                ..self.credentials.clone()
            },
            nonces: Arc::clone(&self.nonces),
            accepted_form: Arc::clone(&self.accepted_form),
        }
    }

    /// Posts a form as this client, within `timeout` in total. If the provider rejects an assertion, each
    /// other form is tried once. The accepted form is the first one next time.
    pub(crate) async fn post(
        &self,
        metadata: &Metadata,
        at: (&'static str, &Url),
        fields: &[(&str, &str)],
        now: u64,
        timeout: Duration,
    ) -> Result<ProviderResponse, ProviderError> {
        let deadline = Instant::now() + timeout;
        let first = self.accepted_form.load(Ordering::Relaxed);
        let forms = (0..ASSERTION_FORMS.len()).map(|nth| (first + nth) % ASSERTION_FORMS.len());
        let mut refused = None;
        for form in forms {
            let Some((auth, audience)) = self.proof_by(metadata, at.1, ASSERTION_FORMS[form]) else {
                continue;
            };
            let answer = self.post_as((&auth, audience), at, fields, now, deadline).await?;
            if !(matches!(auth, ClientAuth::PrivateKeyJwt(_)) && answer.doubts_client()) {
                if refused.is_some() {
                    self.accepted_form.store(form, Ordering::Relaxed);
                }
                return Ok(answer);
            }
            refused = Some(answer);
        }
        refused.ok_or(ProviderError::ClientAssertion(SigningFailed))
    }

    /// The authentication for an assertion form, and its audience. `None` if the form is not allowed or
    /// changes nothing. An assertion for the token endpoint goes only to the origin of that endpoint.
    fn proof_by<'a>(
        &'a self,
        metadata: &'a Metadata,
        url: &Url,
        (audience, algorithm): (AssertionAudience, AssertionAlgorithm),
    ) -> Option<(ClientAuth, &'a str)> {
        let auth = self
            .credentials
            .auth
            .for_methods(&metadata.token_endpoint_auth_methods)
            .signing_by(&metadata.token_endpoint_auth_signing_algs, algorithm)?;
        let token_endpoint = &metadata.token_endpoint;
        let audience = match audience {
            AssertionAudience::Issuer => self.http.settings.issuer.as_str(),
            AssertionAudience::TokenEndpoint => Some(token_endpoint)
                .filter(|endpoint| endpoint.origin() == url.origin())?
                .as_str(),
        };
        Some((auth, audience))
    }

    /// Posts a form with this proof. Each request needs a new assertion.
    async fn post_as(
        &self,
        (auth, audience): (&ClientAuth, &str),
        (endpoint, url): (&'static str, &Url),
        fields: &[(&str, &str)],
        now: u64,
        deadline: Instant,
    ) -> Result<ProviderResponse, ProviderError> {
        let is_bound = endpoint == TOKEN_ENDPOINT && self.credentials.dpop_key.is_some();
        let send = || async {
            let proof = auth.prove(&self.http.settings.client_id, audience, &random::token(), now)?;
            let dpop = match is_bound {
                true => self.dpop_proof("POST", url, None, now)?,
                false => None,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let http = &self.http;
            http.post_form(endpoint, url, proof, fields, left, dpop.as_deref())
                .await
        };
        self.with_nonce(url, is_bound, send).await
    }

    /// Gets a resource with an access token of this type.
    pub(crate) async fn get_with_token(
        &self,
        endpoint: &'static str,
        url: &Url,
        (token_type, access_token): (&str, &str),
        now: u64,
    ) -> Result<ProviderResponse, ProviderError> {
        let is_bound = token_type.eq_ignore_ascii_case("DPoP");
        let send = || async {
            let dpop = match is_bound {
                true => {
                    let proof = self.dpop_proof("GET", url, Some(access_token), now)?;
                    Some(proof.ok_or(SigningFailed)?)
                }
                false => None,
            };
            let http = &self.http;
            http.get_with_token(endpoint, url, access_token, dpop.as_deref())
                .await
        };
        self.with_nonce(url, is_bound, send).await
    }

    /// Sends a request, and repeats it with the server's nonce if the server asks for that.
    async fn with_nonce<F>(
        &self,
        url: &Url,
        is_bound: bool,
        send: impl Fn() -> F,
    ) -> Result<ProviderResponse, ProviderError>
    where
        F: Future<Output = Result<ProviderResponse, ProviderError>>,
    {
        let learn = |answer: &ProviderResponse| {
            let nonce = answer.header(DPOP_NONCE);
            nonce.is_some_and(|nonce| self.nonces.learn(url, nonce))
        };
        let answer = send().await?;
        if !learn(&answer) || !is_bound || !answer.wants_nonce() {
            return Ok(answer);
        }
        let answer = send().await?;
        learn(&answer);
        Ok(answer)
    }

    /// A proof for one request; `None` if tokens are not bound.
    pub(crate) fn dpop_proof(
        &self,
        method: &str,
        url: &Url,
        access_token: Option<&str>,
        now: u64,
    ) -> Result<Option<String>, ProviderError> {
        let Some(key) = &self.credentials.dpop_key else {
            return Ok(None);
        };
        let nonce = self.nonces.get(url);
        let request = Request {
            method,
            url,
            access_token,
            nonce: nonce.as_deref(),
            now,
        };
        Ok(Some(key.proof(&request)?))
    }
}
