//! The metadata and keys of an issuer as this process knows them: a provider's, or a transmitter's of security events.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::provider::cached::{Cached, Fetched};
use crate::provider::http_client::HttpClient;
use crate::provider::key_refetch::{RefetchThrottle, TokenOrigin};
use crate::provider::metadata::{DISCOVERY_DOCUMENT, is_empty};
use crate::tokens::jws::UnverifiedToken;
use crate::tokens::key_set::{KeySet, SignatureVerdict};
use crate::{IdTokenError, Metadata, ProviderError};

/// Members of RFC 8414 that OpenID Connect Discovery does not have: some providers write them into the second document alone.
const OAUTH_MEMBERS: [&str; 3] = [
    "revocation_endpoint",
    "introspection_endpoint",
    "pushed_authorization_request_endpoint",
];

/// Which documents of an issuer are read.
#[derive(Clone, Copy)]
pub(crate) enum Documents {
    First,
    /// Members that the first lacks are taken from the second.
    Both,
}

/// Shared by all clones of a relying party.
#[derive(Default)]
pub(crate) struct ProviderCache {
    metadata: Arc<Cached<Metadata>>,
    /// The same with what only a second document says, for those that need it.
    whole: Arc<Cached<Metadata>>,
    keys: Cached<KeySet>,
    key_refetches: RefetchThrottle,
    metadata_refetches: RefetchThrottle,
}

impl ProviderCache {
    /// The metadata. What was read before stays while a document is away.
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

    /// The metadata past the cache, for a token that does not fit it: fetched as often as the token's origin is worth it, and
    /// otherwise as it is known once a fetch under way is over.
    pub(crate) async fn metadata_anew(
        &self,
        http: &HttpClient,
        origin: TokenOrigin,
    ) -> Result<Arc<Metadata>, ProviderError> {
        if self.metadata_refetches.begin(origin).is_ok() {
            return self.refetch_metadata(http).await;
        }
        match self.metadata.settled().await {
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

    /// Verifies by the provider's keys. One that is not known is looked for at the provider, as often and as long as the
    /// token's origin is worth it, and so is, once, another key under the name of one that does not verify the token.
    ///
    /// # Errors
    /// [`IdTokenError::UnknownKey`] and [`IdTokenError::Provider`] are no verdict: the token cannot be judged now.
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

    /// Looks for the token's key at the provider, or waits for the call that does.
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

    /// Judges once more by new keys a token that the key it names does not verify: some providers make a new key under the name
    /// of the old one. A bad signature by keys that could not be fetched within the interval is no verdict.
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

    /// By the keys there are once a fetch under way is over.
    async fn verdict_of_others(&self, token: &UnverifiedToken<'_>) -> SignatureVerdict {
        let keys = self.keys.settled().await;
        keys.map_or(SignatureVerdict::NoSuchKey, |keys| keys.verify(token))
    }

    /// By keys fetched for this token; where they lack it, its metadata is fetched to see whether they have moved.
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
    let url = settings
        .metadata_address()
        .ok_or(ProviderError::MissingEndpoint(endpoint))?;
    let answer = http.get(endpoint, &url).await?;
    let mut document: Map<String, Value> = answer.document()?;
    if let Documents::Both = documents {
        add_members(http, &mut document).await?;
    }
    Ok((settings.judge(document)?, answer.max_age_secs()))
}

/// Adds the members that the first document lacks and a second one of the same issuer has. No such document is no failure.
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
