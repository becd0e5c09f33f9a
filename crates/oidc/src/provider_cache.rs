//! The provider's metadata and keys as this process knows them.

use std::sync::Arc;

use crate::cached::{Cached, Fetched};
use crate::http_client::HttpClient;
use crate::jws::Unverified;
use crate::key_set::{KeySet, Verdict};
use crate::key_source::Refetches;
use crate::{ClientAuth, IdTokenError, Metadata, ProviderError, ProviderSettings};

/// Shared by all clones of a relying party.
#[derive(Default)]
pub(crate) struct ProviderCache {
    metadata: Cached<Metadata>,
    keys: Cached<KeySet>,
    /// Refetches for ID tokens, which come from the provider itself.
    pub(crate) for_logins: Refetches,
    /// Refetches for logout tokens, which anybody can send.
    pub(crate) for_logouts: Refetches,
}

impl ProviderCache {
    pub(crate) async fn metadata(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<ProviderSettings>,
    ) -> Result<Arc<Metadata>, ProviderError> {
        let Some((metadata, ageing)) = self.metadata.fresh() else {
            return self.metadata.fetch(|| fetch_metadata(http, settings)).await;
        };
        if ageing && self.metadata.begin_refresh() {
            let (cache, http, settings) = (self.clone(), http.clone(), settings.clone());
            tokio::spawn(async move {
                // a failure is in the log already and the value in use stays
                let _ = cache.metadata.fetch(|| fetch_metadata(&http, &settings)).await;
                cache.metadata.end_refresh();
            });
        }
        Ok(metadata)
    }

    async fn keys(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<ProviderSettings>,
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
        settings: &Arc<ProviderSettings>,
    ) -> Result<Arc<KeySet>, ProviderError> {
        let metadata = self.metadata(http, settings).await?;
        self.keys.fetch(|| fetch_keys(http, settings, metadata)).await
    }

    /// Verifies by the provider's keys; an unknown key makes one refetch within `refetches`.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        http: &HttpClient,
        settings: &Arc<ProviderSettings>,
        token: &Unverified<'_>,
        refetches: &Refetches,
    ) -> Result<(), IdTokenError> {
        let algorithm = settings.id_token_alg;
        let keys = self.keys(http, settings).await?;
        let mut verdict = keys.verify(token, algorithm);
        // without a kid a failure may be a rotation too
        let perhaps_rotated =
            verdict == Verdict::NoSuchKey || (verdict == Verdict::BadSignature && token.kid.is_none());
        if perhaps_rotated {
            let kid = token.kid.as_deref();
            if refetches.begin(kid) {
                let keys = self.refetch_keys(http, settings).await?;
                verdict = keys.verify(token, algorithm);
                if verdict == Verdict::Verified {
                    refetches.fruitful(kid);
                }
            } else {
                // somebody else is fetching for the same key: wait for that and look again
                verdict = self.keys.settled().await.unwrap_or(keys).verify(token, algorithm);
            }
        }
        match verdict {
            Verdict::Verified => Ok(()),
            Verdict::NoSuchKey => Err(IdTokenError::UnknownKey),
            Verdict::BadSignature => Err(IdTokenError::Signature),
        }
    }
}

async fn fetch_metadata(
    http: &HttpClient,
    settings: &ProviderSettings,
) -> Result<Fetched<Metadata>, ProviderError> {
    let endpoint = "discovery document";
    let url = Metadata::address(&settings.issuer).ok_or(ProviderError::MissingEndpoint { endpoint })?;
    let answer = http.get(endpoint, &url).await?;
    if answer.status != 200 {
        return Err(answer.status_error());
    }
    let mutual_tls = matches!(settings.client_auth, ClientAuth::TlsClientAuth { .. });
    Ok((
        Metadata::from_document(&answer.json()?, &settings.issuer, mutual_tls)?,
        answer.max_age_secs,
    ))
}

async fn fetch_keys(
    http: &HttpClient,
    settings: &ProviderSettings,
    metadata: Arc<Metadata>,
) -> Result<Fetched<KeySet>, ProviderError> {
    let endpoint = "jwks_uri";
    let answer = http.get(endpoint, &metadata.jwks_uri).await?;
    if answer.status != 200 {
        return Err(answer.status_error());
    }
    let keys = KeySet::from_jwks(&answer.json()?, settings.id_token_alg);
    Ok((
        keys.ok_or(ProviderError::Malformed { endpoint })?,
        answer.max_age_secs,
    ))
}
