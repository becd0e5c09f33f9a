//! Reads the authorization servers of APIs in other trust domains.
//!
//! ```toml
//! [[server]]
//! audience = "chat"
//! issuer = "https://auth.chat.example"
//! client_id = "vestibule"
//! client_secret_file = "/run/secrets/chat"
//! ```
//!
//! Invariants: every mistake is reported at once, with its line. The file names files with secrets, never secrets.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use chassis::settings::Reader;
use chassis::settings::toml_file::{self, FileMistakes, Table, Value};
use oidc::{
    ClientAuth, ClientKey, ClientKeys, ClientSecret, Credentials, ForwardProxy, ProviderSettings,
    RelyingParty, is_resource,
};
use provider_settings::ConfiguredProviders;

use super::signals::fields::{file, issuer, url};
use crate::refresh::{ApiServer, ApiServers, ServerList};

const NAME: &str = "SESSION_API_SERVERS";

/// The most servers of one file: the service caches the metadata of each.
const MAX_SERVERS: usize = 100;

/// Shorter secrets can be guessed.
const LEAST_SECRET_CHARS: usize = 8;

/// What the file is read with.
#[derive(Clone, Debug, Default)]
pub struct FileContext {
    /// The issuers of the providers, which are no servers of APIs.
    pub providers: Vec<String>,
    /// The proxy for calls to the servers.
    pub proxy: Option<ForwardProxy>,
}

/// The file, as read at the start.
#[derive(Clone, Debug)]
pub struct ApiServersFile {
    path: PathBuf,
    context: FileContext,
    servers: ApiServers,
}

impl ApiServersFile {
    /// The servers of the file, which follow its changes. Needs a tokio runtime.
    pub(crate) fn follow(self) -> ApiServers {
        self.servers
            .follow(self.path, move |text| parse(text, &self.context));
        self.servers
    }
}

/// Reads the file of the setting. Its mistakes are mistakes of the setting.
pub(super) fn read(
    reader: &mut Reader<'_>,
    providers: &ConfiguredProviders,
    proxy: Option<ForwardProxy>,
) -> Option<ApiServersFile> {
    let path = reader.path(NAME)?;
    let issuers = providers.settings().map(|settings| settings.issuer.clone());
    let providers = issuers.collect();
    let context = FileContext { providers, proxy };
    let list = reader.toml_file(NAME, &path, |text| parse(text, &context))?;
    Some(ApiServersFile {
        path,
        context,
        servers: ApiServers::new(list),
    })
}

/// Reads the servers.
///
/// # Errors
/// Every mistake, in the order of the file.
pub fn parse(text: &str, context: &FileContext) -> Result<ServerList, FileMistakes> {
    let (mut audiences, mut issuers) = (BTreeSet::new(), BTreeSet::new());
    let mut files = Vec::new();
    let servers = toml_file::parse(text, |all| {
        all.tables("server", MAX_SERVERS, |table| {
            let server = server(table, context, &mut files)?;
            let (audience, issuer) = (server.audience.clone(), server.issuer().to_owned());
            if !audiences.insert(audience.clone()) {
                table.wrong(format!(
                    "audience {audience:?} appears twice: it has to name one server"
                ));
            }
            if context.providers.contains(&issuer) {
                table.wrong(format!(
                    "issuer {issuer:?} is a provider: a token for its own APIs needs no [[server]]"
                ));
            }
            if !issuers.insert(issuer.clone()) {
                table.wrong(format!(
                    "issuer {issuer:?} appears twice: let routes name the resource and scopes of each API"
                ));
            }
            Some(Arc::new(server))
        })
    })?;
    if servers.is_empty() {
        return Err(FileMistakes::of_file(
            "there is no [[server]]; leave SESSION_API_SERVERS unset if no API has its own authorization server",
        ));
    }
    Ok(ServerList { servers, files })
}

fn server(table: &Table<'_>, context: &FileContext, files: &mut Vec<PathBuf>) -> Option<ApiServer> {
    let audience = table.required("audience").and_then(Value::string);
    let issuer = table.required("issuer").and_then(issuer);
    let token_endpoint = table.get("token_endpoint").and_then(url);
    let client_id = table.required("client_id").and_then(Value::string);
    let auth = auth(table, files);
    let resource = table.get("resource").and_then(resource);
    let scope = table.get("scope").and_then(Value::string);
    let ca_file = table.get("ca_file").and_then(|value| read_file(value, files));
    let mut settings = ProviderSettings::of_api_server(issuer?, client_id?, token_endpoint);
    settings.ca_file = ca_file.map(|(path, _)| path);
    settings.credentials = Credentials {
        auth: auth?,
        proxy: context.proxy.clone(),
        ..Credentials::default()
    };
    let client = RelyingParty::new(settings).map_err(|error| table.wrong(error.to_string()));
    Some(ApiServer {
        audience: audience?,
        resource: resource.unwrap_or_default(),
        scope: scope.unwrap_or_default(),
        client: client.ok()?,
    })
}

/// The client authentication: by the one file that is there, unless `client_auth` names another method.
fn auth(table: &Table<'_>, files: &mut Vec<PathBuf>) -> Option<ClientAuth> {
    let methods = [
        "client_secret_basic",
        "client_secret_post",
        "private_key_jwt",
        "none",
    ];
    let method = table.get("client_auth");
    let method = method.map(|value| value.one_of(&methods.map(|name| (name, name))));
    let secret = table.get("client_secret_file");
    let key = table.get("client_key_file");
    match (method.map_or(Some(""), |given| given)?, secret, key) {
        ("", Some(value), None) => secret_of(value, files).map(ClientAuth::SecretByMetadata),
        ("client_secret_basic", Some(value), None) => secret_of(value, files).map(ClientAuth::SecretBasic),
        ("client_secret_post", Some(value), None) => secret_of(value, files).map(ClientAuth::SecretPost),
        ("" | "private_key_jwt", None, Some(value)) => key_of(value, files).map(ClientAuth::PrivateKeyJwt),
        ("none", None, None) => Some(ClientAuth::None),
        _ => {
            table.wrong(
                "the server needs client_secret_file, or client_key_file for private_key_jwt, or client_auth = \"none\"",
            );
            None
        }
    }
}

fn secret_of(value: Value<'_>, files: &mut Vec<PathBuf>) -> Option<ClientSecret> {
    let (path, text) = read_file(value, files)?;
    let (path, secret) = (path.display(), text.trim());
    if secret.chars().count() < LEAST_SECRET_CHARS {
        let problem = format!("the secret in {path} must have at least {LEAST_SECRET_CHARS} characters");
        value.wrong(problem);
        return None;
    }
    Some(ClientSecret::new(secret.to_owned()))
}

fn key_of(value: Value<'_>, files: &mut Vec<PathBuf>) -> Option<ClientKeys> {
    let (path, text) = read_file(value, files)?;
    let path = path.display();
    let problem = |_| value.wrong(format!("{path} must hold a PEM private key in PKCS#8"));
    let key = ClientKey::from_pem(&text).map_err(problem).ok()?;
    Some(ClientKeys::new(key, Vec::new()))
}

/// The path and the text of a file, which is followed even if it has a mistake now.
fn read_file(value: Value<'_>, files: &mut Vec<PathBuf>) -> Option<(PathBuf, String)> {
    let (path, text) = file(value)?;
    files.push(path.clone());
    Some((path, text))
}

fn resource(value: Value<'_>) -> Option<String> {
    let text = value.string()?;
    if !is_resource(&text) {
        value.wrong("resource has to be an absolute URL without a fragment");
    }
    Some(text)
}

#[cfg(test)]
#[path = "api_servers_tests.rs"]
mod tests;
