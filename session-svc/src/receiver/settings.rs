//! Reads the trusted transmitters of the file of signals.
//!
//! ```toml
//! [[transmitter]]
//! id = "idp"
//! issuer = "https://id.example.com"
//! audience = "https://login.example.com/signals"
//!
//! [policy]
//! credential-change = "end"
//! ```
//!
//! Invariants: every mistake is named at once, with its line; secrets are named by their files and never written into this one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chassis::files::read_bounded;
use chassis::secret::Secret;
use chassis::settings::toml_file::{Table, Value};
use oidc::endpoint_is_secure;
use ssf::TransmitterSettings;
use url::Url;

use super::policy::EventPolicy;

/// The most transmitters of one file: the service caches keys of each.
const MAX_TRANSMITTERS: usize = 100;

/// The longest id: it stands in logs and metrics.
const MAX_ID_BYTES: usize = 32;

/// Trusted transmitters, and what their events do.
#[derive(Clone, Debug)]
pub struct TransmittersFile {
    /// The transmitters: at least one, no two with the same issuer.
    pub transmitters: Vec<ConfiguredTransmitter>,
    /// What each event does.
    pub(super) policy: EventPolicy,
}

impl TransmittersFile {
    /// Whether a transmitter may name people by email address.
    pub(crate) fn has_email(&self) -> bool {
        self.transmitters.iter().any(|one| one.by_email)
    }
}

/// A transmitter as configured.
#[derive(Clone, Debug)]
pub struct ConfiguredTransmitter {
    /// Its name in logs and metrics.
    pub id: String,
    /// Its issuer, and how its keys are fetched.
    pub settings: TransmitterSettings,
    /// Our names; a token has to be for one of them.
    pub audience: Vec<String>,
    /// Issuer of the provider whose sessions its events are about.
    pub provider: String,
    /// Whether verified email addresses find people.
    pub by_email: bool,
    /// The rows that differ from the policy of the file.
    pub(super) policy: EventPolicy,
    /// The Authorization header of its pushes, and the file with it; `None` accepts any.
    pub authorization: Option<(PathBuf, Secret<String>)>,
}

/// Reads the transmitters of the file and what their events do; none if it has neither.
pub(crate) fn read(file: &Table<'_>) -> Option<TransmittersFile> {
    let (mut ids, mut issuers) = (BTreeSet::new(), BTreeSet::new());
    let mut tables = 0;
    let transmitters = file.tables("transmitter", MAX_TRANSMITTERS, |table| {
        tables += 1;
        let one = transmitter(table)?;
        if !ids.insert(one.id.clone()) {
            table.wrong(format!(
                "id {:?} is there twice: it has to name one transmitter",
                one.id
            ));
        }
        if !issuers.insert(one.settings.issuer.clone()) {
            table.wrong(format!(
                "issuer {:?} is there twice: events of two transmitters differ by it",
                one.settings.issuer
            ));
        }
        Some(one)
    });
    let policy = file.table("policy", EventPolicy::read);
    if tables == 0 {
        if policy.is_some() {
            file.wrong("there is no transmitter: write a [[transmitter]] table for each");
        }
        return None;
    }
    Some(TransmittersFile {
        transmitters,
        policy: policy.unwrap_or_default(),
    })
}

fn transmitter(table: &Table<'_>) -> Option<ConfiguredTransmitter> {
    let id = table.required("id").and_then(id);
    let issuer = table.required("issuer").and_then(issuer);
    let configuration_url = table.get("configuration_url").map(address);
    let audience = table.required("audience").and_then(texts);
    let provider = table.get("provider").and_then(Value::string);
    let authorization = table.get("authorization_file").map(authorization);
    let ca_file = table.get("ca_file").and_then(path);
    // An address that the provider has verified names the person unless the file says otherwise.
    let by_email = table.get("email").and_then(Value::boolean).unwrap_or(true);
    let drafts = table.flag("drafts");
    let policy = table.table("policy", EventPolicy::read).unwrap_or_default();
    let issuer = issuer?;
    let settings = TransmitterSettings {
        configuration_url: match configuration_url {
            Some(url) => Some(url?),
            None => None,
        },
        ca_file,
        drafts,
        ..TransmitterSettings::new(issuer.clone())
    };
    Some(ConfiguredTransmitter {
        id: id?,
        settings,
        audience: audience?,
        provider: provider.unwrap_or(issuer),
        by_email,
        policy,
        authorization: match authorization {
            Some(header) => Some(header?),
            None => None,
        },
    })
}

fn id(value: Value<'_>) -> Option<String> {
    let id = value.string()?;
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    if id.len() > MAX_ID_BYTES || !id.bytes().all(plain) {
        value.wrong(format!(
            "id {id:?} has to be a-z, 0-9, - or _, at most {MAX_ID_BYTES} of them: it stands in logs and metrics"
        ));
        return None;
    }
    Some(id)
}

/// An issuer (OpenID Shared Signals Framework 1.0, section 7.1).
fn issuer(value: Value<'_>) -> Option<String> {
    let text = value.string()?;
    let url = Url::parse(&text).ok();
    let is_issuer = |url: &Url| endpoint_is_secure(url) && url.query().is_none() && url.fragment().is_none();
    if !url.as_ref().is_some_and(is_issuer) {
        value.wrong(format!(
            "issuer {text:?} has to be an https address without query and fragment"
        ));
        return None;
    }
    Some(text)
}

fn address(value: Value<'_>) -> Option<Url> {
    let text = value.string()?;
    let url = Url::parse(&text).ok().filter(endpoint_is_secure);
    if url.is_none() {
        value.wrong(format!("{text:?} has to be an https address"));
    }
    url
}

/// A text, or several.
fn texts(value: Value<'_>) -> Option<Vec<String>> {
    match value.as_list() {
        Some(_) => value.strings(),
        None => value.string().map(|text| vec![text]),
    }
}

/// A file that is there.
fn path(value: Value<'_>) -> Option<PathBuf> {
    let text = value.string()?;
    if !Path::new(&text).is_file() {
        value.wrong(format!("the file {text} cannot be read: it is not there"));
        return None;
    }
    Some(text.into())
}

/// The value of the Authorization header, and its file.
fn authorization(value: Value<'_>) -> Option<(PathBuf, Secret<String>)> {
    let path = path(value)?;
    let bytes = match read_bounded(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            value.wrong(format!("the file {} cannot be read: {error}", path.display()));
            return None;
        }
    };
    match parse_header(std::str::from_utf8(&bytes).unwrap_or_default()) {
        Ok(header) => Some((path, header)),
        Err(error) => {
            value.wrong(format!("{}: {error}", path.display()));
            None
        }
    }
}

/// The value of an Authorization header.
pub(super) fn parse_header(text: &str) -> Result<Secret<String>, NoHeader> {
    match text.trim() {
        "" => Err(NoHeader),
        text => Ok(Secret::new(text.to_owned())),
    }
}

/// A file without a header.
#[derive(Debug, thiserror::Error)]
#[error("the file has no text: write the value of the Authorization header into it")]
pub(super) struct NoHeader;

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
