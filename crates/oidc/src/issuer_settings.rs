//! What the cache of an issuer's metadata and keys has to know of the issuer, whatever kind of issuer it is.

use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use crate::endpoint::endpoint_is_secure;
use crate::metadata::DISCOVERY_DOCUMENT;
use crate::{BuildError, ClientAuth, Metadata, ProviderError, ProviderSettings};

/// The settings of an issuer that publishes metadata, and by it a key set.
pub(crate) trait IssuerSettings: Send + Sync + 'static {
    /// The metadata, once it was judged.
    type Metadata: Send + Sync + 'static;

    /// What errors and whoever measures requests call the document with the metadata.
    const DOCUMENT: &'static str;

    /// Where the document is.
    fn document_url(&self) -> Option<Url>;

    /// Judges the document.
    ///
    /// # Errors
    /// It is another issuer's, or lacks what is needed, or names what must not be used.
    fn judge(&self, document: &Map<String, Value>) -> Result<Self::Metadata, ProviderError>;

    /// Where the key set is.
    fn jwks_uri(metadata: &Self::Metadata) -> &Url;

    /// Bound on each exchange with the issuer, and on all that one token is looked for.
    fn http_timeout(&self) -> Duration;
}

/// Whether the URL may be an issuer's: absolute, http or https, without query and fragment, and https outside loopback.
///
/// # Errors
/// Why it may not.
pub(crate) fn check_issuer(url: &Url) -> Result<(), BuildError> {
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_web || url.query().is_some() || url.fragment().is_some() {
        return Err(BuildError::Issuer);
    }
    if !endpoint_is_secure(url) {
        return Err(BuildError::InsecureIssuer);
    }
    Ok(())
}

impl ProviderSettings {
    /// Where the metadata are.
    pub(crate) fn metadata_address(&self) -> Option<Url> {
        let configured = self.metadata_url.clone();
        configured.or_else(|| Metadata::address(&self.issuer))
    }

    /// The provider's metadata with the endpoints that configuration gives, which are for clients with a certificate too.
    pub(crate) fn with_configured_endpoints(&self, mut document: Map<String, Value>) -> Map<String, Value> {
        for (name, url) in &self.endpoints {
            document.insert((*name).to_owned(), url.as_str().into());
            if let Some(Value::Object(aliases)) = document.get_mut("mtls_endpoint_aliases") {
                aliases.remove(*name);
            }
        }
        document
    }
}

impl IssuerSettings for ProviderSettings {
    type Metadata = Metadata;

    const DOCUMENT: &'static str = DISCOVERY_DOCUMENT;

    fn document_url(&self) -> Option<Url> {
        self.metadata_address()
    }

    fn judge(&self, document: &Map<String, Value>) -> Result<Metadata, ProviderError> {
        let mutual_tls = matches!(self.client_auth, ClientAuth::TlsClientAuth { .. });
        let document = self.with_configured_endpoints(document.clone());
        Metadata::from_document(&document, &self.issuer_of_metadata(), mutual_tls)
    }

    fn jwks_uri(metadata: &Metadata) -> &Url {
        &metadata.jwks_uri
    }

    fn http_timeout(&self) -> Duration {
        self.http_timeout
    }
}
