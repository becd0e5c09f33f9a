//! The URLs of an issuer's metadata, and the rules for accepting the metadata.

use serde_json::{Map, Value};
use url::Url;

use crate::provider::metadata::OPENID_CONFIGURATION;
use crate::settings::endpoint::endpoint_is_secure;
use crate::{BuildError, ClientAuth, IssuerUse, Metadata, ProviderError, ProviderSettings};

/// The metadata path of authorization servers without OpenID Connect (RFC 8414 section 3).
const OAUTH_CONFIGURATION: &str = "/.well-known/oauth-authorization-server";

/// Checks an issuer URL: absolute, without query or fragment, and https (on loopback also http).
///
/// # Errors
/// The URL breaks one of these rules.
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
    /// The configured metadata URL, else the one below the issuer (Discovery 4.1).
    pub(crate) fn metadata_address(&self) -> Option<Url> {
        let configured = self.metadata_url.clone();
        configured.or_else(|| Metadata::address(&self.issuer))
    }

    /// The metadata URL by RFC 8414 section 3.1. `None` if the configured URL has no OpenID path to replace.
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

    /// Replaces endpoints of the provider's metadata with configured ones, and removes their mutual-TLS aliases.
    pub(crate) fn with_configured_endpoints(&self, mut document: Map<String, Value>) -> Map<String, Value> {
        if self.issuer_use == IssuerUse::Signatures {
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
    /// The metadata names another issuer, lacks a required member, or contains an insecure endpoint.
    pub(crate) fn check_document(&self, document: Map<String, Value>) -> Result<Metadata, ProviderError> {
        let mutual_tls = matches!(self.credentials.auth, ClientAuth::TlsClientAuth { .. });
        let document = self.with_configured_endpoints(document);
        Metadata::from_document(&document, &self.issuer_of_metadata(), mutual_tls)
    }
}

#[cfg(test)]
#[path = "issuer_settings_tests.rs"]
mod tests;
