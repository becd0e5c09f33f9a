//! Where an issuer's metadata are, and which may be used.

use serde_json::{Map, Value};
use url::Url;

use crate::provider::metadata::OPENID_CONFIGURATION;
use crate::settings::endpoint::endpoint_is_secure;
use crate::{BuildError, ClientAuth, Metadata, ProviderError, ProviderSettings};

/// Where authorization servers without OpenID Connect have their metadata (RFC 8414 section 3).
const OAUTH_CONFIGURATION: &str = "/.well-known/oauth-authorization-server";

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

    /// The provider's metadata with the endpoints that configuration gives, which are for clients with a certificate too.
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

    /// Judges the metadata.
    ///
    /// # Errors
    /// They are another issuer's, or lack what is needed, or name what must not be used.
    pub(crate) fn judge(&self, document: Map<String, Value>) -> Result<Metadata, ProviderError> {
        let mutual_tls = matches!(self.credentials.auth, ClientAuth::TlsClientAuth { .. });
        let document = self.with_configured_endpoints(document);
        Metadata::from_document(&document, &self.issuer_of_metadata(), mutual_tls)
    }
}

#[cfg(test)]
#[path = "issuer_settings_tests.rs"]
mod tests;
