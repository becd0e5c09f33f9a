//! What a transmitter of security events publishes of itself (OpenID Shared Signals Framework 1.0 section 7).
//!
//! What must not be used counts as absent, and only what needs it stops (section 7.2.4): a stream that cannot be managed delivers
//! events all the same. Issuer, keys and critical members are needed for every event.
//!
//! Deliberately absent: `/.well-known/risc-configuration` (section 7.2.2). Whoever publishes there sends events without `sub_id`,
//! which are none of SSF 1.0.

use serde_json::{Map, Value};
use url::Url;

use crate::ProviderError;
use crate::endpoint::is_usable_of;

/// What errors and whoever measures requests call the document with the metadata.
pub const TRANSMITTER_CONFIGURATION: &str = "transmitter configuration";
/// Where the document is below the issuer's host (section 7.2).
const WELL_KNOWN: &str = "/.well-known/ssf-configuration";
/// Most elements of a list that are looked at; honest ones have a handful.
const MAX_ELEMENTS: usize = 64;
/// Longest text of a list in bytes.
const MAX_TEXT_BYTES: usize = 512;

/// A transmitter's configuration metadata (SSF 1.0 section 7.1). Every address has passed the https rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransmitterMetadata {
    /// Issuer, equal to the configured one byte by byte.
    pub issuer: String,
    /// The version of the specification it conforms to; `None` stands for `1_0-ID1`.
    pub spec_version: Option<String>,
    /// Where the keys are that it signs with. SSF lets it be absent where nothing is signed; here it is required, since nothing
    /// else tells that an event is genuine.
    pub jwks_uri: Url,
    /// URIs of the ways of delivery; empty where it is not told.
    pub delivery_methods: Vec<String>,
    /// Where streams are made, read, changed and deleted.
    pub configuration_endpoint: Option<Url>,
    /// Where the status of a stream is read and changed.
    pub status_endpoint: Option<Url>,
    /// Where subjects are added to a stream.
    pub add_subject_endpoint: Option<Url>,
    /// Where subjects are removed from a stream.
    pub remove_subject_endpoint: Option<Url>,
    /// Where a stream is asked to show that it works.
    pub verification_endpoint: Option<Url>,
    /// Members of a complex subject that must not be passed over: an event with one that cannot be processed is discarded
    /// (section 3.6).
    pub critical_subject_members: Vec<String>,
    /// URNs of the specifications by which the management of streams is protected (`spec_urn`); empty where it is not told.
    pub authorization_schemes: Vec<String>,
    /// Whom a new stream is about; `None` where it is not told.
    pub default_subjects: Option<DefaultSubjects>,
}

/// Whom a new stream is about (SSF 1.0 section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultSubjects {
    /// All subjects that fit the stream, until they are removed.
    All,
    /// None, until they are added.
    None,
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
        let is_usable = |url: &Url| is_usable_of(issuer, url);
        let address = |name: &str| {
            let text = document.get(name).and_then(Value::as_str);
            text.and_then(|text| Url::parse(text).ok())
        };
        let endpoint = |name: &str| address(name).filter(is_usable);
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        let keys = "jwks_uri";
        let jwks_uri = address(keys).ok_or(ProviderError::MissingEndpoint { endpoint: keys })?;
        if !is_usable(&jwks_uri) {
            return Err(ProviderError::InsecureEndpoint { endpoint: keys });
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            spec_version: text("spec_version").and_then(bounded),
            jwks_uri,
            delivery_methods: texts(document.get("delivery_methods_supported"), Value::as_str),
            configuration_endpoint: endpoint("configuration_endpoint"),
            status_endpoint: endpoint("status_endpoint"),
            add_subject_endpoint: endpoint("add_subject_endpoint"),
            remove_subject_endpoint: endpoint("remove_subject_endpoint"),
            verification_endpoint: endpoint("verification_endpoint"),
            critical_subject_members: critical_members(document.get("critical_subject_members"))?,
            authorization_schemes: texts(document.get("authorization_schemes"), |scheme| {
                scheme.get("spec_urn").and_then(Value::as_str)
            }),
            default_subjects: match text("default_subjects") {
                Some("ALL") => Some(DefaultSubjects::All),
                Some("NONE") => Some(DefaultSubjects::None),
                _ => None,
            },
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

fn bounded(text: &str) -> Option<String> {
    (text.len() <= MAX_TEXT_BYTES).then(|| text.to_owned())
}

/// The texts of a list, as far as they can be read.
fn texts<'a>(list: Option<&'a Value>, text: impl Fn(&'a Value) -> Option<&'a str>) -> Vec<String> {
    let elements = list.and_then(Value::as_array).into_iter().flatten();
    let texts = elements.take(MAX_ELEMENTS).filter_map(text);
    texts.filter_map(bounded).collect()
}

/// Members that must not be passed over: to pass over the list, or a part of it, would be to pass over them.
fn critical_members(list: Option<&Value>) -> Result<Vec<String>, ProviderError> {
    let Some(list) = list.filter(|list| !list.is_null()) else {
        return Ok(Vec::new());
    };
    let names = texts(Some(list), Value::as_str);
    let is_whole = list.as_array().is_some_and(|all| all.len() == names.len());
    if !is_whole {
        return Err(ProviderError::Malformed {
            endpoint: TRANSMITTER_CONFIGURATION,
        });
    }
    Ok(names)
}

#[cfg(test)]
#[path = "transmitter_metadata_tests.rs"]
mod tests;
