//! The metadata and keys of an issuer as this process knows them: a provider's, or a transmitter's of security events.

use std::sync::Arc;

use serde_json::{Map, Value};
use url::Url;

use crate::provider::cached::{Cached, Fetched};
use crate::provider::http_client::HttpClient;
use crate::provider::issuer_settings::IssuerSettings;
use crate::provider::key_refetch::{RefetchThrottle, TokenOrigin};
use crate::provider::metadata::is_empty;
use crate::tokens::jws::UnverifiedToken;
use crate::tokens::key_set::{KeySet, SignatureVerdict};
use crate::{IdTokenError, ProviderError, ProviderSettings};

/// Which documents of an issuer are read.
#[derive(Clone, Copy)]
pub(crate) enum Documents {
    First,
    /// Members that the first lacks are taken from the second.
    Both,
}

/// Shared by all clones of a relying party, or of a transmitter.
pub(crate) struct ProviderCache<S: IssuerSettings = ProviderSettings> {
    metadata: Cached<S::Metadata>,
    /// The same with what only a second document says, for those that need it.
    whole: Cached<S::Metadata>,
    keys: Cached<KeySet>,
    /// Forced fetches of keys for tokens the provider handed us.
    provider_refetches: RefetchThrottle,
    /// The same for tokens anybody can send: logout tokens, security events.
    unauthenticated_refetches: RefetchThrottle,
    /// Forced fetches of metadata, for tokens the provider handed us.
    provider_metadata_refetches: RefetchThrottle,
    /// The same for tokens anybody can send.
    unauthenticated_metadata_refetches: RefetchThrottle,
}

impl<S: IssuerSettings> Default for ProviderCache<S> {
    fn default() -> Self {
        Self {
            metadata: Cached::default(),
            whole: Cached::default(),
            keys: Cached::default(),
            provider_refetches: RefetchThrottle::for_provider_tokens(),
            unauthenticated_refetches: RefetchThrottle::for_unauthenticated_tokens(),
            provider_metadata_refetches: RefetchThrottle::for_provider_tokens(),
            unauthenticated_metadata_refetches: RefetchThrottle::for_unauthenticated_tokens(),
        }
    }
}

impl<S: IssuerSettings> ProviderCache<S> {
    /// The metadata. What was read before stays while a document is away.
    pub(crate) async fn metadata(
        self: &Arc<Self>,
        documents: Documents,
        http: &HttpClient,
        settings: &Arc<S>,
    ) -> Result<Arc<S::Metadata>, ProviderError> {
        let Some((metadata, ageing)) = self.of(documents).fresh() else {
            return self.fetched_metadata(documents, http, settings).await;
        };
        if ageing && self.of(documents).begin_refresh() {
            let (cache, http, settings) = (self.clone(), http.clone(), settings.clone());
            tokio::spawn(async move {
                // a failure is in the log already and the value in use stays
                let _ = cache.fetched_metadata(documents, &http, &settings).await;
                cache.of(documents).end_refresh();
            });
        }
        Ok(metadata)
    }

    fn of(&self, documents: Documents) -> &Cached<S::Metadata> {
        match documents {
            Documents::First => &self.metadata,
            Documents::Both => &self.whole,
        }
    }

    /// The metadata past the cache, for a token that does not fit it: fetched as often as the token's origin is worth it, and
    /// otherwise as it is known once a fetch under way is over.
    pub(crate) async fn metadata_anew(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<S>,
        origin: TokenOrigin,
    ) -> Result<Arc<S::Metadata>, ProviderError> {
        let refetches = match origin {
            TokenOrigin::Interactive | TokenOrigin::Background => &self.provider_metadata_refetches,
            TokenOrigin::Unauthenticated => &self.unauthenticated_metadata_refetches,
        };
        if refetches.begin().is_ok() {
            return self.fetched_metadata(Documents::First, http, settings).await;
        }
        match self.metadata.settled().await {
            Some(metadata) => Ok(metadata),
            None => self.metadata(Documents::First, http, settings).await,
        }
    }

    async fn fetched_metadata(
        &self,
        documents: Documents,
        http: &HttpClient,
        settings: &S,
    ) -> Result<Arc<S::Metadata>, ProviderError> {
        let fetch = || fetch_metadata(documents, http, settings);
        self.of(documents).fetch(fetch).await
    }

    async fn keys(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<S>,
    ) -> Result<Arc<KeySet>, ProviderError> {
        let Some((keys, ageing)) = self.keys.fresh() else {
            return self.refetch_keys(http, settings).await;
        };
        if ageing && self.keys.begin_refresh() {
            let (cache, http, settings) = (self.clone(), http.clone(), settings.clone());
            tokio::spawn(async move {
                let _ = cache.refetch_keys(&http, &settings).await;
                cache.keys.end_refresh();
            });
        }
        Ok(keys)
    }

    async fn refetch_keys(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<S>,
    ) -> Result<Arc<KeySet>, ProviderError> {
        let metadata = self.metadata(Documents::First, http, settings).await?;
        self.keys.fetch(|| fetch_keys::<S>(http, metadata)).await
    }

    /// Verifies by the provider's keys. One that is not known is looked for at the provider, as often and as long as the
    /// token's origin is worth it, and so is, once, another key under the name of one that does not verify the token.
    ///
    /// # Errors
    /// [`IdTokenError::UnknownKey`] and [`IdTokenError::Provider`] are no verdict: the token cannot be judged now.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<S>,
        token: &UnverifiedToken<'_>,
        origin: TokenOrigin,
    ) -> Result<(), IdTokenError> {
        let keys = self.keys(http, settings).await?;
        let mut verdict = keys.verify(token);
        if verdict != SignatureVerdict::Verified {
            let sought = async {
                match verdict {
                    SignatureVerdict::BadSignature => self.verdict_anew(http, settings, token, origin).await,
                    _ => self.seek(http, settings, token, origin).await,
                }
            };
            verdict = tokio::time::timeout(settings.http_timeout(), sought)
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
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<S>,
        token: &UnverifiedToken<'_>,
        origin: TokenOrigin,
    ) -> Result<SignatureVerdict, IdTokenError> {
        let refetches = self.refetches(origin);
        let mut verdict = SignatureVerdict::NoSuchKey;
        for _ in 0..origin.rounds() {
            let mut turn = refetches.begin();
            if let Err(wait) = turn
                && origin.waits_for_turn()
            {
                verdict = self.verdict_of_others(token).await;
                if verdict != SignatureVerdict::NoSuchKey {
                    break;
                }
                tokio::time::sleep(wait).await;
                turn = refetches.begin();
            }
            verdict = match turn {
                Ok(()) => self.refetched_verdict(http, settings, token).await?,
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
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<S>,
        token: &UnverifiedToken<'_>,
        origin: TokenOrigin,
    ) -> Result<SignatureVerdict, IdTokenError> {
        let refetches = self.refetches(origin);
        let verdict = match refetches.begin() {
            Ok(()) => self.refetch_keys(http, settings).await?.verify(token),
            Err(_) => self.verdict_of_others(token).await,
        };
        if verdict == SignatureVerdict::BadSignature && !self.keys.fetched_within(refetches.interval()) {
            return Ok(SignatureVerdict::NoSuchKey);
        }
        Ok(verdict)
    }

    fn refetches(&self, origin: TokenOrigin) -> &RefetchThrottle {
        match origin {
            TokenOrigin::Interactive | TokenOrigin::Background => &self.provider_refetches,
            TokenOrigin::Unauthenticated => &self.unauthenticated_refetches,
        }
    }

    /// By the keys there are once a fetch under way is over.
    async fn verdict_of_others(&self, token: &UnverifiedToken<'_>) -> SignatureVerdict {
        let keys = self.keys.settled().await;
        keys.map_or(SignatureVerdict::NoSuchKey, |keys| keys.verify(token))
    }

    /// By keys fetched for this token; where they lack it, its metadata is fetched to see whether they have moved.
    async fn refetched_verdict(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<S>,
        token: &UnverifiedToken<'_>,
    ) -> Result<SignatureVerdict, IdTokenError> {
        let before = self.metadata(Documents::First, http, settings).await?;
        let keys = self.refetch_keys(http, settings).await?;
        let verdict = keys.verify(token);
        if verdict != SignatureVerdict::NoSuchKey {
            return Ok(verdict);
        }
        let now = self.fetched_metadata(Documents::First, http, settings).await?;
        if S::jwks_uri(&now) == S::jwks_uri(&before) {
            return Ok(verdict);
        }
        let keys = self.refetch_keys(http, settings).await?;
        Ok(keys.verify(token))
    }
}

async fn fetch_metadata<S: IssuerSettings>(
    documents: Documents,
    http: &HttpClient,
    settings: &S,
) -> Result<Fetched<S::Metadata>, ProviderError> {
    let endpoint = S::DOCUMENT;
    let url = settings
        .document_url()
        .ok_or(ProviderError::MissingEndpoint { endpoint })?;
    let answer = http.get(endpoint, &url).await?;
    if answer.status != 200 {
        return Err(answer.status_error());
    }
    let mut document: Map<String, Value> = answer.json()?;
    if let (Documents::Both, Some((url, names))) = (documents, settings.second_document()) {
        add_members(http, endpoint, &url, names, &mut document).await?;
    }
    Ok((settings.judge(&document)?, answer.max_age_secs))
}

/// Adds the members that the first document lacks and a second one of the same issuer has. No such document is no failure.
async fn add_members(
    http: &HttpClient,
    endpoint: &'static str,
    url: &Url,
    names: &[&str],
    document: &mut Map<String, Value>,
) -> Result<(), ProviderError> {
    let answer = http.get(endpoint, url).await?;
    if answer.status == 429 || answer.status >= 500 {
        return Err(answer.status_error());
    }
    let second: Map<String, Value> = answer.json().unwrap_or_default();
    if answer.status == 200 && second.get("issuer") == document.get("issuer") {
        for name in names {
            if let (true, Some(value)) = (document.get(*name).is_none_or(is_empty), second.get(*name)) {
                document.insert((*name).to_owned(), value.clone());
            }
        }
    }
    Ok(())
}

async fn fetch_keys<S: IssuerSettings>(
    http: &HttpClient,
    metadata: Arc<S::Metadata>,
) -> Result<Fetched<KeySet>, ProviderError> {
    let endpoint = "jwks_uri";
    let answer = http.get(endpoint, S::jwks_uri(&metadata)).await?;
    if answer.status != 200 {
        return Err(answer.status_error());
    }
    Ok((KeySet::new(&answer.json()?), answer.max_age_secs))
}
