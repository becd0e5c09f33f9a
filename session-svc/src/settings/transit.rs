//! The settings of Vault, which unwraps keys.

use chassis::files::read_bounded;
use chassis::secret::Secret;
use chassis::settings::{Reader, Topic, setting};
use chassis::tls;
use url::Url;

use crate::transit::{Login, TransitSettings, is_any_wrapped};

const ADDRESS: &str = "SESSION_VAULT_ADDR";
const KEY: &str = "SESSION_VAULT_KEY";
const TOKEN_FILE: &str = "SESSION_VAULT_TOKEN_FILE";
const LOGIN: &str = "SESSION_VAULT_LOGIN";
const CA_FILE: &str = "SESSION_VAULT_CA_FILE";

/// The mount of the transit engine, unless the setting names one.
const MOUNT: &str = "transit";

/// Keys wrapped by Vault or OpenBao.
pub static TOPIC: Topic = Topic {
    title: "Vault",
    settings: &[
        setting(
            ADDRESS,
            "",
            "URL",
            "Address of Vault or OpenBao, whose transit engine unwraps the keys vault:v1:… of SESSION_ENCRYPTION_KEY (docs/vault.md). Must be https, except on loopback. Never through HTTPS_PROXY.",
        ),
        setting(
            KEY,
            "transit/vestibule",
            "MOUNT/NAME",
            "Transit key that wraps them. The mount may begin with a namespace: admin/transit/vestibule.",
        ),
        setting(
            TOKEN_FILE,
            "",
            "FILE",
            "File with a Vault token, or with the JWT for SESSION_VAULT_LOGIN. Read again for each request. Required with SESSION_VAULT_ADDR.",
        ),
        setting(
            LOGIN,
            "",
            "auth/MOUNT/ROLE",
            "Authentication method and role that give a Vault token for a JWT, such as auth/kubernetes/session-svc. Without it, SESSION_VAULT_TOKEN_FILE has a Vault token.",
        ),
        setting(
            CA_FILE,
            "",
            "FILE",
            "PEM certificates of the authorities to trust for Vault, instead of the public ones. Read again for each request.",
        ),
    ],
};

/// Reads and validates the settings. Wrapped keys need them.
pub(super) fn read(reader: &mut Reader<'_>, keys: &[Secret<String>]) -> Option<TransitSettings> {
    let address = address(reader);
    let token_file = reader.path(TOKEN_FILE);
    let (mount, key) = transit_key(reader);
    let login = login(reader);
    let ca_file = tls::read_authorities(reader, CA_FILE);
    if !reader.is_given(ADDRESS) {
        if is_any_wrapped(keys) {
            reader.wrong(ADDRESS, "is required: SESSION_ENCRYPTION_KEY has a wrapped key");
        }
        for name in [KEY, TOKEN_FILE, LOGIN, CA_FILE] {
            if reader.is_given(name) {
                reader.wrong(name, "needs SESSION_VAULT_ADDR");
            }
        }
        return None;
    }
    let Some(token_file) = token_file else {
        reader.wrong(TOKEN_FILE, "is required with SESSION_VAULT_ADDR");
        return None;
    };
    // Vault Agent may write the file after this start.
    if let Err(error) = read_bounded(&token_file) {
        let path = token_file.display();
        reader.warn(
            TOKEN_FILE,
            format!("{path} cannot be read: {error}. The service waits for it"),
        );
    }
    Some(TransitSettings {
        address: address?,
        mount,
        key,
        token_file,
        login,
        ca_file,
    })
}

fn address(reader: &mut Reader<'_>) -> Option<Url> {
    let url = reader.url(ADDRESS)?;
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        reader.wrong(
            ADDRESS,
            "must contain neither credentials nor a query nor a fragment",
        );
    } else if !oidc::endpoint_is_secure(&url) {
        reader.wrong(ADDRESS, "must use https; http is allowed on loopback only");
    }
    Some(url)
}

/// The mount and the name of the transit key.
fn transit_key(reader: &mut Reader<'_>) -> (String, String) {
    let text = reader.text(KEY);
    let (mount, key) = text.rsplit_once('/').unwrap_or((MOUNT, &text));
    if !is_path(mount) || !is_path(key) {
        reader.wrong(KEY, "must be a mount and a name, such as transit/vestibule");
    }
    (mount.to_owned(), key.to_owned())
}

fn login(reader: &mut Reader<'_>) -> Option<Login> {
    let text = reader.optional_text(LOGIN)?;
    let (path, role) = text.rsplit_once('/').unwrap_or_default();
    let has_method = path.split('/').rev().skip(1).any(|segment| segment == "auth");
    if !has_method || !is_path(path) || !is_path(role) {
        reader.wrong(
            LOGIN,
            "must be the path of a method and a role, such as auth/kubernetes/session-svc",
        );
    }
    Some(Login {
        path: path.to_owned(),
        role: role.to_owned(),
    })
}

/// Whether each segment has a text. A segment of dots would change the address.
fn is_path(text: &str) -> bool {
    let is_segment = |segment: &str| !segment.is_empty() && segment.bytes().any(|byte| byte != b'.');
    text.split('/').all(is_segment)
}
