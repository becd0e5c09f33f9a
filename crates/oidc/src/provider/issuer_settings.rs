//! The location of an issuer's metadata, and the rules for accepting them.

use serde_json::{Map, Value};
use url::Url;

use crate::provider::metadata::OPENID_CONFIGURATION;
use crate::settings::endpoint::endpoint_is_secure;
use crate::{BuildError, ClientAuth, Metadata, ProviderError, ProviderSettings};

/// The metadata path of authorization servers without OpenID Connect (RFC 8414 section 3).
const OAUTH_CONFIGURATION: &str = "/.well-known/oauth-authorization-server";

/// Whether an issuer URL is allowed: absolute, no query or fragment, https or, on loopback, http.
///
/// # Errors
/// Why it is not allowed.
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
    /// The URL of the metadata.
    pub(crate) fn metadata_address(&self) -> Option<Url> {
        let configured = self.metadata_url.clone();
        configured.or_else(|| Metadata::address(&self.issuer))
    }

    /// The URL of RFC 8414 section 3.1: the well-known part comes before the issuer's path.
    pub(crate) fn oauth_metadata_address(&self) -> Option<Url> {
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

    /// The provider's metadata with configured endpoints, which also replace those for mutual TLS.
    pub(crate) fn with_configured_endpoints(&self, mut document: Map<String, Value>) -> Map<String, Value> {
        if self.only_signs {
            document.retain(|name, _| name == "issuer" || name == "jwks_uri");
        }
        for (name, url) in &self.endpoints {
            document.insert((*name).to_owned(), url.as_str().into());
            if let Some(Value::Object(aliases)) = document.get_mut("mtls_endpoint_aliases") {
                aliases.remove(*name);
            }
        }
        document
    }

    /// Validates the metadata.
    ///
    /// # Errors
    /// They are of another issuer, lack a required member, or name an insecure endpoint.
    pub(crate) fn judge(&self, document: Map<String, Value>) -> Result<Metadata, ProviderError> {
        let mutual_tls = matches!(self.credentials.auth, ClientAuth::TlsClientAuth { .. });
        let document = self.with_configured_endpoints(document);
        Metadata::from_document(&document, &self.issuer_of_metadata(), mutual_tls)
    }
}

#[cfg(test)]
#[path = "issuer_settings_tests.rs"]
mod tests;
