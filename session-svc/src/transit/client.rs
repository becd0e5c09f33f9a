//! Calls of Vault's HTTP API: `decrypt` of the transit engine, and `login` of an authentication method.
//!
//! Invariants: each request has a deadline and follows no redirect, so the token reaches no other server. At most
//! [`MAX_ANSWER_BYTES`] of an answer are read. Token and authorities are read again for each connection.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chassis::files::read_bounded;
use chassis::secret::Secret;
use oidc::BuildError;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use crate::vault::KEY_BYTES;

/// The deadline of an answer. Vault unwraps a key within milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A login answers with policies and metadata, which are a few kilobytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Characters of Vault's own message that an error shows.
const MAX_SAID_CHARS: usize = 200;

const TOKEN_HEADER: &str = "x-vault-token";

/// Where Vault is, and how the service authenticates there.
#[derive(Clone, Debug)]
pub(crate) struct TransitSettings {
    /// The address, https, or http on loopback.
    pub(crate) address: Url,
    /// The mount of the transit engine, behind its namespace if there is one.
    pub(crate) mount: String,
    /// The name of the transit key.
    pub(crate) key: String,
    /// The file with Vault's token, or with the JWT for `login`.
    pub(crate) token_file: PathBuf,
    /// The method that gives a token for a JWT.
    pub(crate) login: Option<Login>,
    /// Authorities of Vault's certificate instead of the public ones.
    pub(crate) ca_file: Option<PathBuf>,
}

/// An authentication method that accepts a JWT: `kubernetes` or `jwt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    /// Its path, such as `auth/kubernetes`.
    pub(crate) path: String,
    /// The role of the service there.
    pub(crate) role: String,
}

/// Why a key could not be unwrapped.
#[derive(Debug, thiserror::Error)]
pub enum UnwrapError {
    /// The file with the token is missing, unreadable or malformed.
    #[error("the file of SESSION_VAULT_TOKEN_FILE cannot be used")]
    Token(#[source] io::Error),
    /// The authorities cannot be used.
    #[error("the connection to SESSION_VAULT_ADDR cannot be set up")]
    Setup(#[from] BuildError),
    /// There is no connection, or no answer in time.
    #[error("Vault does not answer at SESSION_VAULT_ADDR")]
    Unreachable(#[source] reqwest::Error),
    /// Vault, or a proxy before it, refuses the request.
    #[error("{path} answers {status}{}: {}", quoted(.said.as_deref()), advice(*.status))]
    Status {
        /// The path below `/v1/`.
        path: String,
        /// The HTTP status.
        status: u16,
        /// Vault's own message. A proxy before it sends none.
        said: Option<String>,
    },
    /// The answer is too long or not Vault's.
    #[error("{0} answers with something else than Vault does: check SESSION_VAULT_ADDR")]
    Malformed(String),
    /// The ciphertext contains something else than a key.
    #[error("it contains no key of 32 bytes: make one with `vault write -f MOUNT/datakey/wrapped/NAME`")]
    NotAKey,
}

impl UnwrapError {
    /// Whether a retry cannot help. 403 is not final: an operator may renew the token or change its policy.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Status { status, said, .. } => matches!(status, 400 | 404) && said.is_some(),
            Self::NotAKey => true,
            _ => false,
        }
    }
}

fn quoted(said: Option<&str>) -> String {
    said.map(|said| format!(" {said:?}")).unwrap_or_default()
}

fn advice(status: u16) -> &'static str {
    match status {
        300..=399 => "redirects are not followed, set SESSION_VAULT_ADDR to the address that it names",
        400 => "check SESSION_VAULT_KEY, SESSION_VAULT_LOGIN and the wrapped key",
        403 => "renew the token in SESSION_VAULT_TOKEN_FILE, or give its policy \"update\" on this path",
        404 => "nothing is mounted there, check SESSION_VAULT_KEY and SESSION_VAULT_LOGIN",
        _ => "Vault is sealed, starting or overloaded",
    }
}

/// A connection with a token.
pub(crate) struct Transit<'a> {
    http: reqwest::Client,
    settings: &'a TransitSettings,
    token: HeaderValue,
}

impl<'a> Transit<'a> {
    /// Connects with the token of the file, or with one that a login gives.
    pub(crate) async fn connect(settings: &'a TransitSettings) -> Result<Self, UnwrapError> {
        let http = oidc::client_builder(TIMEOUT, settings.ca_file.as_deref(), None)?;
        let http = http.build().map_err(BuildError::HttpClient)?;
        let given = read_token(&settings.token_file).map_err(UnwrapError::Token)?;
        let token = match &settings.login {
            None => given,
            Some(Login { path, role }) => {
                let body = json!({"role": role, "jwt": given.expose()});
                let request = http.post(address(&settings.address, &[path, "login"]));
                let path = format!("{path}/login");
                Secret::new(post(path, request, &body, "/auth/client_token").await?)
            }
        };
        let mut token = HeaderValue::from_str(token.expose())
            .map_err(|_| UnwrapError::Token(io::ErrorKind::InvalidData.into()))?;
        token.set_sensitive(true);
        Ok(Self {
            http,
            settings,
            token,
        })
    }

    /// Unwraps a key (Vault HTTP API, "Transit secrets engine", "Decrypt data").
    pub(crate) async fn unwrap_key(&self, sealed: &str) -> Result<Secret<[u8; KEY_BYTES]>, UnwrapError> {
        let TransitSettings { mount, key, .. } = self.settings;
        let request = self
            .http
            .post(address(&self.settings.address, &[mount, "decrypt", key]))
            .header(TOKEN_HEADER, self.token.clone());
        let path = format!("{mount}/decrypt/{key}");
        let text = post(path, request, &json!({"ciphertext": sealed}), "/data/plaintext").await?;
        let bytes = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Secret::new).ok_or(UnwrapError::NotAKey)
    }
}

fn read_token(path: &Path) -> io::Result<Secret<String>> {
    let text = String::from_utf8(read_bounded(path)?);
    let text = text.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    match text.trim() {
        "" => Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty")),
        text => Ok(Secret::new(text.to_owned())),
    }
}

/// The address of a path below `/v1/`; each part may have several segments.
fn address(base: &Url, parts: &[&str]) -> Url {
    let mut url = base.clone();
    let segments = parts.iter().flat_map(|part| part.split('/'));
    // An http or https URL has segments.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("v1").extend(segments);
    }
    url
}

/// Sends JSON and returns the text at `member` of the answer, a JSON pointer (RFC 6901).
async fn post(
    path: String,
    request: reqwest::RequestBuilder,
    body: &Value,
    member: &str,
) -> Result<String, UnwrapError> {
    let request = request
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    let unreachable = |error: reqwest::Error| UnwrapError::Unreachable(error.without_url());
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if answer.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(UnwrapError::Malformed(path));
        }
        answer.extend_from_slice(&chunk);
    }
    let answer: Option<Value> = serde_json::from_slice(&answer).ok();
    let text = |pointer: &str| answer.as_ref()?.pointer(pointer)?.as_str();
    if status != 200 {
        let said = text("/errors/0").map(|said| {
            let words: Vec<&str> = said.split_whitespace().collect();
            words.join(" ").chars().take(MAX_SAID_CHARS).collect()
        });
        return Err(UnwrapError::Status { path, status, said });
    }
    let found = text(member).map(str::to_owned);
    found.ok_or(UnwrapError::Malformed(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_keeps_a_prefix_and_encodes_each_segment() {
        for (base, parts, expected) in [
            (
                "https://vault.example",
                ["transit", "vestibule"],
                "https://vault.example/v1/transit/vestibule",
            ),
            (
                "https://vault.example:8200/",
                ["admin/team/transit", "key"],
                "https://vault.example:8200/v1/admin/team/transit/key",
            ),
            (
                "https://example/vault/",
                ["transit", "a?b#c"],
                "https://example/vault/v1/transit/a%3Fb%23c",
            ),
        ] {
            let base = Url::parse(base).unwrap();
            assert_eq!(address(&base, &parts).as_str(), expected);
        }
    }

    #[test]
    fn only_what_vault_itself_rejects_is_final() {
        let status = |status, said: Option<&str>| UnwrapError::Status {
            path: "transit/decrypt/vestibule".to_owned(),
            status,
            said: said.map(str::to_owned),
        };
        for code in [400, 404] {
            assert!(
                status(code, Some("encryption key not found")).is_final(),
                "{code}"
            );
            assert!(!status(code, None).is_final(), "{code} of a proxy");
        }
        for code in [302, 307, 403, 412, 429, 500, 501, 502, 503] {
            assert!(!status(code, Some("Vault is sealed")).is_final(), "{code}");
        }
        let refused = status(403, Some("permission denied")).to_string();
        let expected = "transit/decrypt/vestibule answers 403 \"permission denied\": renew the token";
        assert!(refused.starts_with(expected), "{refused}");
    }
}
