//! Caches the metadata and keys of an issuer: a provider, or a transmitter of security events.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::provider::cached::{Cached, Fetched};
use crate::provider::http_client::HttpClient;
use crate::provider::key_refetch::{RefetchThrottle, TokenOrigin};
use crate::provider::metadata::{DISCOVERY_DOCUMENT, is_empty};
use crate::tokens::jws::UnverifiedToken;
use crate::tokens::key_set::{KeySet, SignatureVerdict};
use crate::{IdTokenError, IssuerUse, Metadata, ProviderError};

/// Members that only RFC 8414 defines. Some providers write them only into the second document.
const OAUTH_MEMBERS: [&str; 3] = [
    "revocation_endpoint",
    "introspection_endpoint",
    "pushed_authorization_request_endpoint",
];

/// The documents to read for an issuer.
#[derive(Clone, Copy)]
pub(crate) enum Documents {
    First,
    /// Both: the second adds members that the first lacks.
    Both,
}

/// Shared by all clones of a relying party.
#[derive(Default)]
pub(crate) struct ProviderCache {
    metadata: Arc<Cached<Metadata>>,
    /// The metadata of [`Documents::Both`].
    whole: Arc<Cached<Metadata>>,
    keys: Cached<KeySet>,
    key_refetches: RefetchThrottle,
    metadata_refetches: RefetchThrottle,
}

impl ProviderCache {
    /// The metadata. If a document is unavailable, its last content stays.
    pub(crate) async fn metadata(
        &self,
        documents: Documents,
        http: &HttpClient,
    ) -> Result<Arc<Metadata>, ProviderError> {
        let cached = match documents {
            Documents::First => &self.metadata,
            Documents::Both => &self.whole,
        };
        let fetched = || {
            let (cached, http) = (Arc::clone(cached), http.clone());
            async move { cached.fetch(|| fetch_metadata(documents, &http)).await }
        };
        cached.get(fetched).await
    }

    /// Fetches the metadata for a token that does not match them, if the token's origin allows one now.
    /// Otherwise waits for the current fetch, if any, and returns the known metadata.
    pub(crate) async fn metadata_anew(
        &self,
        http: &HttpClient,
        origin: TokenOrigin,
    ) -> Result<Arc<Metadata>, ProviderError> {
        if self.metadata_refetches.begin(origin).is_ok() {
            return self.refetch_metadata(http).await;
        }
        match self.metadata.wait_for_fetch().await {
            Some(metadata) => Ok(metadata),
            None => self.metadata(Documents::First, http).await,
        }
    }

    async fn refetch_metadata(&self, http: &HttpClient) -> Result<Arc<Metadata>, ProviderError> {
        let fetch = || fetch_metadata(Documents::First, http);
        self.metadata.fetch(fetch).await
    }

    async fn refetch_keys(&self, http: &HttpClient) -> Result<Arc<KeySet>, ProviderError> {
        let metadata = self.metadata(Documents::First, http).await?;
        self.keys.fetch(|| fetch_keys(http, metadata)).await
    }

    /// Verifies with the provider's keys. An unknown key is fetched as often and as long as the token's
    /// origin allows. If the named key does not verify the token, the keys are fetched once more.
    ///
    /// # Errors
    /// [`IdTokenError::UnknownKey`] and [`IdTokenError::Provider`] are no verdict: a retry may succeed.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        http: &HttpClient,
        token: &UnverifiedToken<'_>,
        origin: TokenOrigin,
    ) -> Result<(), IdTokenError> {
        let fetched = || {
            let (cache, http) = (Arc::clone(self), http.clone());
            async move { cache.refetch_keys(&http).await }
        };
        let mut verdict = self.keys.get(fetched).await?.verify(token);
        if verdict != SignatureVerdict::Verified {
            let sought = async {
                match verdict {
                    SignatureVerdict::BadSignature => self.verdict_anew(http, token, origin).await,
                    _ => self.seek(http, token, origin).await,
                }
            };
            verdict = tokio::time::timeout(http.settings.http_timeout, sought)
                .await
                .unwrap_or(Ok(SignatureVerdict::NoSuchKey))?;
        }
        match verdict {
            SignatureVerdict::Verified => Ok(()),
            SignatureVerdict::NoSuchKey => Err(IdTokenError::UnknownKey),
            SignatureVerdict::BadSignature => Err(IdTokenError::Signature),
        }
    }

    /// Fetches the token's key from the provider, or waits for a running fetch.
    async fn seek(
        &self,
        http: &HttpClient,
        token: &UnverifiedToken<'_>,
        origin: TokenOrigin,
    ) -> Result<SignatureVerdict, IdTokenError> {
        let mut verdict = SignatureVerdict::NoSuchKey;
        for _ in 0..origin.rounds() {
            let mut turn = self.key_refetches.begin(origin);
            if let Err(wait) = turn
                && origin.waits_for_turn()
            {
                verdict = self.verdict_of_others(token).await;
                if verdict != SignatureVerdict::NoSuchKey {
                    break;
                }
                tokio::time::sleep(wait).await;
                turn = self.key_refetches.begin(origin);
            }
            verdict = match turn {
                Ok(()) => self.refetched_verdict(http, token).await?,
                Err(_) => self.verdict_of_others(token).await,
            };
            if verdict != SignatureVerdict::NoSuchKey {
                break;
            }
        }
        Ok(verdict)
    }

    /// Verifies a token again with new keys if the key it names failed: some providers reuse key names. If
    /// the keys could not be fetched within the interval, a bad signature is no verdict.
    async fn verdict_anew(
        &self,
        http: &HttpClient,
        token: &UnverifiedToken<'_>,
        origin: TokenOrigin,
    ) -> Result<SignatureVerdict, IdTokenError> {
        let verdict = match self.key_refetches.begin(origin) {
            Ok(()) => self.refetch_keys(http).await?.verify(token),
            Err(_) => self.verdict_of_others(token).await,
        };
        if verdict == SignatureVerdict::BadSignature && !self.keys.fetched_within(origin.interval()) {
            return Ok(SignatureVerdict::NoSuchKey);
        }
        Ok(verdict)
    }

    /// Waits for a fetch that another caller started, and verifies with its keys.
    async fn verdict_of_others(&self, token: &UnverifiedToken<'_>) -> SignatureVerdict {
        let keys = self.keys.wait_for_fetch().await;
        keys.map_or(SignatureVerdict::NoSuchKey, |keys| keys.verify(token))
    }

    /// Fetches keys for this token. If they lack its key, the metadata are fetched in case `jwks_uri` moved.
    async fn refetched_verdict(
        &self,
        http: &HttpClient,
        token: &UnverifiedToken<'_>,
    ) -> Result<SignatureVerdict, IdTokenError> {
        let before = self.metadata(Documents::First, http).await?;
        let verdict = self.refetch_keys(http).await?.verify(token);
        if verdict != SignatureVerdict::NoSuchKey
            || self.refetch_metadata(http).await?.jwks_uri == before.jwks_uri
        {
            return Ok(verdict);
        }
        Ok(self.refetch_keys(http).await?.verify(token))
    }
}

async fn fetch_metadata(documents: Documents, http: &HttpClient) -> Result<Fetched<Metadata>, ProviderError> {
    let (endpoint, settings) = (DISCOVERY_DOCUMENT, &http.settings);
    if settings.issuer_use == IssuerUse::ApiTokens {
        return fetch_server_metadata(http).await;
    }
    let url = settings
        .metadata_address()
        .ok_or(ProviderError::MissingEndpoint(endpoint))?;
    let answer = http.get(endpoint, &url).await?;
    let mut document: Map<String, Value> = answer.document()?;
    if let Documents::Both = documents {
        add_members(http, &mut document).await?;
    }
    Ok((settings.check_document(document)?, answer.max_age_secs()))
}

/// The metadata of an API's authorization server: none with a configured token endpoint, else the document of RFC
/// 8414, else that of OpenID Connect.
async fn fetch_server_metadata(http: &HttpClient) -> Result<Fetched<Metadata>, ProviderError> {
    let settings = &http.settings;
    let mut endpoints = settings.endpoints.iter();
    if endpoints.any(|(name, _)| *name == "token_endpoint") {
        let issuer = ("issuer".to_owned(), settings.issuer.as_str().into());
        return Ok((settings.check_document(Map::from_iter([issuer]))?, None));
    }
    let missing = || ProviderError::MissingEndpoint(DISCOVERY_DOCUMENT);
    let url = settings.oauth_metadata_address().ok_or_else(missing)?;
    let mut answer = http.get(DISCOVERY_DOCUMENT, &url).await?;
    if answer.status == 404 {
        let url = settings.metadata_address().ok_or_else(missing)?;
        answer = http.get(DISCOVERY_DOCUMENT, &url).await?;
    }
    let metadata = settings.check_document(answer.document()?)?;
    Ok((metadata, answer.max_age_secs()))
}

/// Adds members that the first document lacks from a second one of the same issuer, if it exists.
async fn add_members(http: &HttpClient, document: &mut Map<String, Value>) -> Result<(), ProviderError> {
    let Some(url) = http.settings.oauth_metadata_address() else {
        return Ok(());
    };
    let answer = http.get(DISCOVERY_DOCUMENT, &url).await?;
    if answer.status == 429 || answer.status >= 500 {
        return Err(answer.status_error());
    }
    let second: Map<String, Value> = answer.json().unwrap_or_default();
    if answer.status == 200 && second.get("issuer") == document.get("issuer") {
        for name in OAUTH_MEMBERS {
            if let (true, Some(value)) = (document.get(name).is_none_or(is_empty), second.get(name)) {
                document.insert(name.to_owned(), value.clone());
            }
        }
    }
    Ok(())
}

async fn fetch_keys(http: &HttpClient, metadata: Arc<Metadata>) -> Result<Fetched<KeySet>, ProviderError> {
    let answer = http.get("jwks_uri", &metadata.jwks_uri).await?;
    let keys = KeySet::new(&answer.document()?).ok_or_else(|| answer.malformed())?;
    Ok((keys, answer.max_age_secs()))
}
