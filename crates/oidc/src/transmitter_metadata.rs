//! What a transmitter of security events publishes of itself (OpenID Shared Signals Framework 1.0 section 7).
//!
//! Only what the verification of an event needs is read: issuer, keys and critical members.
//!
//! Deliberately absent: endpoints for the management of streams; `/.well-known/risc-configuration` (section 7.2.2), which belongs to
//! events without `sub_id`.

use serde_json::{Map, Value};
use url::Url;

use crate::ProviderError;
use crate::endpoint::is_usable_of;

/// What errors and whoever measures requests call the document with the metadata.
pub const TRANSMITTER_CONFIGURATION: &str = "transmitter configuration";
/// Where the document is below the issuer's host (section 7.2).
const WELL_KNOWN: &str = "/.well-known/ssf-configuration";
/// Most elements of a list; honest ones have a handful.
const MAX_ELEMENTS: usize = 64;
/// Longest text of a list in bytes.
const MAX_TEXT_BYTES: usize = 512;

/// A transmitter's configuration metadata (SSF 1.0 section 7.1). Every address has passed the https rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransmitterMetadata {
    /// Issuer, equal to the configured one byte by byte.
    pub issuer: String,
    /// Where the keys are that it signs with. SSF lets it be absent where nothing is signed; here it is required, since nothing
    /// else tells that an event is genuine.
    pub jwks_uri: Url,
    /// Members of a complex subject that must not be passed over: an event with one that cannot be processed is discarded
    /// (section 3.6).
    pub critical_subject_members: Vec<String>,
}

impl TransmitterMetadata {
    /// Judges the document of an issuer.
    ///
    /// # Errors
    /// It is another issuer's ([`ProviderError::IssuerMismatch`]), names no keys, keys that are not under https, or critical
    /// members that cannot be read.
    pub(crate) fn from_document(document: &Map<String, Value>, issuer: &str) -> Result<Self, ProviderError> {
        if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(ProviderError::IssuerMismatch);
        }
        let keys = "jwks_uri";
        let text = document.get(keys).and_then(Value::as_str);
        let jwks_uri = text.and_then(|text| Url::parse(text).ok());
        let jwks_uri = jwks_uri.ok_or(ProviderError::MissingEndpoint { endpoint: keys })?;
        if !is_usable_of(issuer, &jwks_uri) {
            return Err(ProviderError::InsecureEndpoint { endpoint: keys });
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            jwks_uri,
            critical_subject_members: critical_members(document.get("critical_subject_members"))?,
        })
    }

    /// Where an issuer's document is: between its host and its path, without a slash at the end (SSF 1.0 section 7.2.1).
    pub(crate) fn address(issuer: &str) -> Option<Url> {
        let mut url = Url::parse(issuer).ok()?;
        let path = format!("{WELL_KNOWN}{}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Some(url)
    }
}

/// Members that must not be skipped. A list that cannot be read whole is an error, since skipping a part of it would skip them.
fn critical_members(list: Option<&Value>) -> Result<Vec<String>, ProviderError> {
    let Some(list) = list.filter(|list| !list.is_null()) else {
        return Ok(Vec::new());
    };
    let malformed = || ProviderError::Malformed {
        endpoint: TRANSMITTER_CONFIGURATION,
    };
    let names = list.as_array().filter(|names| names.len() <= MAX_ELEMENTS);
    let name = |name: &Value| {
        let name = name.as_str().filter(|name| name.len() <= MAX_TEXT_BYTES);
        name.map(str::to_owned).ok_or_else(malformed)
    };
    names.ok_or_else(malformed)?.iter().map(name).collect()
}

#[cfg(test)]
#[path = "transmitter_metadata_tests.rs"]
mod tests;
