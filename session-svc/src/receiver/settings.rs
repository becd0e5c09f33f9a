//! Reads the file of the transmitters that are listened to.
//!
//! ```toml
//! [[transmitter]]
//! id = "idp"
//! issuer = "https://id.example.com"
//! audience = "https://login.example.com/signals"
//! delivery = "push"
//! push_url = "https://login.example.com/api/auth/events"
//! token_file = "/run/secrets/idp-signals-token"
//!
//! [policy]
//! credential-change = "end"
//! ```
//!
//! Invariants: every mistake is named at once, with its line; secrets are named by their files and never written into this one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chassis::settings::toml_file::{self, FileMistakes, Table, Value};
use oidc::{TransmitterSettings, endpoint_is_secure};
use url::Url;

use super::policy::EventPolicy;

/// The most transmitters of one file: keys are kept of each.
const MAX_TRANSMITTERS: usize = 100;

/// The longest id: it stands in logs and metrics.
const MAX_ID_BYTES: usize = 32;

/// Whom we listen to, and what is done about what they say.
#[derive(Clone, Debug)]
pub struct TransmittersFile {
    /// The transmitters: at least one, no two of one issuer.
    pub transmitters: Vec<ConfiguredTransmitter>,
    /// What is done about which event.
    pub(super) policy: EventPolicy,
}

impl TransmittersFile {
    /// Whether somebody is known to a transmitter by an email address.
    pub(crate) fn has_email(&self) -> bool {
        self.transmitters.iter().any(|one| one.by_email)
    }
}

/// The file, and what it says.
#[derive(Clone, Debug)]
pub struct ListenedTransmitters {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub file: TransmittersFile,
}

/// A transmitter as configured.
#[derive(Clone, Debug)]
pub struct ConfiguredTransmitter {
    /// What it is called here.
    pub id: String,
    /// Who it is, and how it is reached.
    pub settings: TransmitterSettings,
    /// Our names, one of which its events are for.
    pub audience: Vec<String>,
    /// Issuer of the provider whose sessions its events are about.
    pub provider: String,
    /// How its events come.
    pub(super) delivery: DeliveryMethod,
    /// Whether people are found by their verified email address.
    pub by_email: bool,
    /// What is done about its events where that is not what is done about those of others.
    pub(super) policy: EventPolicy,
    /// What we prove with to it that we may manage our stream.
    pub(super) credentials: Option<StreamCredentials>,
    /// The file of the Authorization header its pushes come with; without one the operator's tool makes one for each stream.
    pub authorization_file: Option<PathBuf>,
}

/// How events come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeliveryMethod {
    /// The transmitter sends each to an edge (RFC 8935), at this address.
    Push(Option<Url>),
    /// We ask for them (RFC 8936).
    Poll,
}

/// What proves to a transmitter who manages a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StreamCredentials {
    /// A bearer token in this file.
    Token(PathBuf),
    /// A grant of client credentials (RFC 6749, section 4.4).
    Client {
        /// Where the token is requested.
        token_endpoint: Url,
        /// Who requests it.
        client_id: String,
        /// The file of the client's secret.
        client_secret_file: PathBuf,
        /// What is requested, separated by spaces.
        scope: Option<String>,
    },
}

/// Reads the file.
///
/// # Errors
/// Every mistake, in the order of the file.
pub fn parse(text: &str) -> Result<TransmittersFile, FileMistakes> {
    let (mut ids, mut issuers) = (BTreeSet::new(), BTreeSet::new());
    toml_file::parse(text, |file| {
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
                    "issuer {:?} is there twice: it is what tells the events of two transmitters apart",
                    one.settings.issuer
                ));
            }
            Some(one)
        });
        if tables == 0 {
            file.wrong("there is no transmitter: write a [[transmitter]] table for each");
        }
        let policy = file.table("policy", EventPolicy::read);
        TransmittersFile {
            transmitters,
            policy: policy.unwrap_or_default(),
        }
    })
}

fn transmitter(table: &Table<'_>) -> Option<ConfiguredTransmitter> {
    let id = table.required("id").and_then(id);
    let issuer = table.required("issuer").and_then(issuer);
    let configuration_url = table.get("configuration_url").map(address);
    let audience = table.required("audience").and_then(texts);
    let provider = table.get("provider").and_then(Value::string);
    let delivery = delivery(table);
    let credentials = credentials(table);
    let authorization_file = table.get("authorization_file").and_then(path);
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
        delivery: delivery?,
        by_email,
        policy,
        credentials: credentials?,
        authorization_file,
    })
}

fn delivery(table: &Table<'_>) -> Option<DeliveryMethod> {
    let push_url = table.get("push_url");
    let is_push = table
        .required("delivery")?
        .one_of(&[("push", true), ("poll", false)])?;
    if !is_push {
        if let Some(value) = push_url {
            value.wrong("push_url is for delivery = \"push\": leave it out");
            return None;
        }
        return Some(DeliveryMethod::Poll);
    }
    match push_url {
        Some(value) => address(value).map(|url| DeliveryMethod::Push(Some(url))),
        None => Some(DeliveryMethod::Push(None)),
    }
}

/// What proves who we are, none where nothing is named; `None` where what is named is wrong.
fn credentials(table: &Table<'_>) -> Option<Option<StreamCredentials>> {
    let token = table.get("token_file");
    let (endpoint, client) = (table.get("token_endpoint"), table.get("client_id"));
    let (secret, scope) = (table.get("client_secret_file"), table.get("scope"));
    if let Some(token) = token {
        for (name, value) in [
            ("token_endpoint", endpoint),
            ("client_id", client),
            ("client_secret_file", secret),
            ("scope", scope),
        ] {
            if let Some(value) = value {
                value.wrong(format!(
                    "{name} and token_file exclude each other: a token that is given is not requested"
                ));
            }
        }
        return path(token).map(|path| Some(StreamCredentials::Token(path)));
    }
    if endpoint.is_none() && client.is_none() && secret.is_none() && scope.is_none() {
        return Some(None);
    }
    let (Some(endpoint), Some(client), Some(secret)) = (endpoint, client, secret) else {
        table.wrong("token_endpoint, client_id and client_secret_file are needed together");
        return None;
    };
    Some(Some(StreamCredentials::Client {
        token_endpoint: address(endpoint)?,
        client_id: client.string()?,
        client_secret_file: path(secret)?,
        scope: match scope {
            Some(scope) => Some(scope.string()?),
            None => None,
        },
    }))
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

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
