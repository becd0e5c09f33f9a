//! The keys of an issuer that is no OpenID provider, read from the document that names them. They are cached and refreshed as those of a
//! provider are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use crate::provider::http_client::HttpClient;
use crate::provider::issuer_settings::{IssuerSettings, check_issuer};
use crate::provider::key_refetch::TokenOrigin;
use crate::provider::provider_cache::ProviderCache;
use crate::settings::endpoint::{endpoint_is_secure, is_usable_of};
use crate::tokens::jws::UnverifiedToken;
use crate::{BuildError, ForwardProxy, IdTokenError, ProviderError};

/// Where an issuer names its keys, and how its documents are fetched.
#[derive(Clone, Debug)]
pub struct IssuerDocument {
    /// Issuer identifier, compared byte by byte with `issuer` of the document.
    pub issuer: String,
    /// Address of the document.
    pub url: Url,
    /// PEM file of the certification authorities trusted for the issuer instead of the public ones.
    pub ca_file: Option<PathBuf>,
    /// The proxy for calls to the issuer.
    pub proxy: Option<ForwardProxy>,
    /// Bound on each exchange, body included.
    pub http_timeout: Duration,
}

impl IssuerSettings for IssuerDocument {
    /// The address of the keys.
    type Metadata = Url;

    const DOCUMENT: &'static str = "issuer document";

    fn document_url(&self) -> Option<Url> {
        Some(self.url.clone())
    }

    fn judge(&self, document: &Map<String, Value>) -> Result<Url, ProviderError> {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        if text("issuer") != Some(self.issuer.as_str()) {
            return Err(ProviderError::IssuerMismatch);
        }
        let endpoint = "jwks_uri";
        let jwks_uri = text(endpoint).and_then(|text| Url::parse(text).ok());
        let jwks_uri = jwks_uri.ok_or(ProviderError::MissingEndpoint { endpoint })?;
        if !is_usable_of(&self.issuer, &jwks_uri) {
            return Err(ProviderError::InsecureEndpoint { endpoint });
        }
        Ok(jwks_uri)
    }

    fn jwks_uri(metadata: &Url) -> &Url {
        metadata
    }

    fn http_timeout(&self) -> Duration {
        self.http_timeout
    }
}

/// The keys of an issuer. Clones are cheap and share caches.
#[derive(Clone)]
pub struct IssuerKeys {
    document: Arc<IssuerDocument>,
    http: HttpClient,
    cache: Arc<ProviderCache<IssuerDocument>>,
}

impl IssuerKeys {
    /// Prepares without any network; the document is read when first needed.
    ///
    /// # Errors
    /// An issuer or an address that is not https outside loopback, or a file of certification authorities without any.
    pub fn new(document: IssuerDocument) -> Result<Self, BuildError> {
        check_issuer(&Url::parse(&document.issuer).map_err(|_| BuildError::Issuer)?)?;
        if !endpoint_is_secure(&document.url) {
            return Err(BuildError::InsecureIssuer);
        }
        let (timeout, proxy) = (document.http_timeout, document.proxy.clone());
        Ok(Self {
            http: HttpClient::anonymous(timeout, document.ca_file.as_deref(), proxy)?,
            document: Arc::new(document),
            cache: Arc::default(),
        })
    }

    /// Verifies the signature of a token from an unauthenticated sender.
    ///
    /// # Errors
    /// [`IdTokenError::is_undecided`] says whether that is no verdict.
    pub async fn verify(&self, token: &UnverifiedToken<'_>) -> Result<(), IdTokenError> {
        let origin = TokenOrigin::Unauthenticated;
        self.cache.verify(&self.http, &self.document, token, origin).await
    }
}

#[cfg(test)]
#[path = "issuer_keys_tests.rs"]
mod tests;
