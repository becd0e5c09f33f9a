//! What the cache of an issuer's metadata and keys has to know of the issuer, whatever kind of issuer it is.

use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use crate::provider::metadata::{DISCOVERY_DOCUMENT, OPENID_CONFIGURATION};
use crate::settings::endpoint::endpoint_is_secure;
use crate::{BuildError, ClientAuth, Metadata, ProviderError, ProviderSettings};

/// Where authorization servers without OpenID Connect have their metadata (RFC 8414 section 3).
const OAUTH_CONFIGURATION: &str = "/.well-known/oauth-authorization-server";
/// Members of RFC 8414 that OpenID Connect Discovery does not have: some providers write them into the second document alone.
const OAUTH_MEMBERS: [&str; 3] = [
    "revocation_endpoint",
    "introspection_endpoint",
    "pushed_authorization_request_endpoint",
];

/// The settings of an issuer that publishes metadata, and by it a key set.
pub(crate) trait IssuerSettings: Send + Sync + 'static {
    /// The metadata, once it was judged.
    type Metadata: Send + Sync + 'static;

    /// What errors and whoever measures requests call the document with the metadata.
    const DOCUMENT: &'static str;

    /// Where the document is.
    fn document_url(&self) -> Option<Url>;

    /// Where a second document is that may have members which the first lacks, and which members those are.
    fn second_document(&self) -> Option<(Url, &'static [&'static str])> {
        None
    }

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

    /// Where the metadata of an authorization server are (RFC 8414 section 3.1): the well-known part comes before the issuer's path.
    fn oauth_metadata_address(&self) -> Option<Url> {
        let mut url = self
            .metadata_url
            .clone()
            .or_else(|| Url::parse(&self.issuer).ok())?;
        let path = match &self.metadata_url {
            Some(url) => url.path().replace(OPENID_CONFIGURATION, OAUTH_CONFIGURATION),
            None => format!("{OAUTH_CONFIGURATION}{}", url.path().trim_end_matches('/')),
        };
        let is_another = path != url.path();
        url.set_path(&path);
        is_another.then_some(url)
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

    fn second_document(&self) -> Option<(Url, &'static [&'static str])> {
        Some((self.oauth_metadata_address()?, &OAUTH_MEMBERS))
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
