//! The client's credentials: the method, what it needs, and the proxy for calls to the provider.

use std::path::{Path, PathBuf};

use chassis::settings::Reader;
use chassis::tls;
use oidc::{
    AssertionType, ClientAuth, ClientKey, ClientKeys, ClientSecret, Credentials, DpopKey, ForwardProxy,
};

/// The setting for the file with a client assertion.
const ASSERTION_FILE: &str = "OIDC_CLIENT_ASSERTION_FILE";

/// Shorter secrets can be guessed.
const LEAST_SECRET_CHARS: usize = 8;
/// Shorter secrets give a warning.
const GOOD_SECRET_CHARS: usize = 32;

/// Reads everything that authenticates this client. After a mistake, it records it and returns a harmless value.
pub(crate) fn credentials(reader: &mut Reader<'_>) -> Credentials {
    Credentials {
        auth: client_auth(reader).unwrap_or_default(),
        request_keys: request_keys(reader),
        dpop_key: dpop_key(reader),
        proxy: proxy(reader),
    }
}

/// Reads the method and its settings; `None` if it recorded a mistake.
fn client_auth(reader: &mut Reader<'_>) -> Option<ClientAuth> {
    let mut method = reader.text("OIDC_CLIENT_AUTH_METHOD");
    if reader.is_given(ASSERTION_FILE) && !reader.is_given("OIDC_CLIENT_AUTH_METHOD") {
        method = "private_key_jwt".to_owned();
    }
    match method.as_str() {
        "client_secret_basic" if !reader.is_given("OIDC_CLIENT_AUTH_METHOD") => {
            secret(reader, &method).map(ClientAuth::SecretByMetadata)
        }
        "client_secret_basic" => secret(reader, &method).map(ClientAuth::SecretBasic),
        "client_secret_post" => secret(reader, &method).map(ClientAuth::SecretPost),
        "private_key_jwt" if reader.is_given(ASSERTION_FILE) => {
            assertion_file(reader, &method, AssertionType::JwtBearer)
        }
        "spiffe_jwt" => assertion_file(reader, &method, AssertionType::JwtSpiffe),
        "private_key_jwt" => keys(reader, &method).map(ClientAuth::PrivateKeyJwt),
        "tls_client_auth" => {
            let cert_file = reader.path("OIDC_CLIENT_CERT_FILE");
            let key_file = key_files(reader).into_iter().next();
            let cert_file = required(reader, "OIDC_CLIENT_CERT_FILE", &method, cert_file);
            let key_file = required(reader, "OIDC_CLIENT_KEY_FILE", &method, key_file);
            let (cert_file, key_file) = (cert_file?, key_file?);
            let certificate = ("OIDC_CLIENT_CERT_FILE", cert_file.as_path());
            let key = ("OIDC_CLIENT_KEY_FILE", key_file.as_path());
            // Checked here, because a later error of the HTTP client would not name the file.
            tls::check_pair(reader, certificate, key)
                .then_some(ClientAuth::TlsClientAuth { cert_file, key_file })
        }
        "none" => {
            if reader.is_given("OIDC_CLIENT_SECRET") {
                reader.warn(
                    "OIDC_CLIENT_SECRET",
                    "is not used by the client authentication method none",
                );
            }
            Some(ClientAuth::None)
        }
        _ => {
            reader.wrong(
                "OIDC_CLIENT_AUTH_METHOD",
                "must be client_secret_basic, client_secret_post, private_key_jwt, spiffe_jwt, tls_client_auth or none",
            );
            None
        }
    }
}

/// The file is not read now: what writes it may start later.
fn assertion_file(
    reader: &mut Reader<'_>,
    method: &str,
    assertion_type: AssertionType,
) -> Option<ClientAuth> {
    let path = reader.path(ASSERTION_FILE);
    let path = required(reader, ASSERTION_FILE, method, path)?;
    for other in ["OIDC_CLIENT_SECRET", "OIDC_CLIENT_KEY_FILE"] {
        if reader.is_given(other) && (other != "OIDC_CLIENT_KEY_FILE" || !reader.flag("OIDC_SIGNED_REQUESTS"))
        {
            reader.wrong(
                other,
                format!("is not used next to {ASSERTION_FILE}: remove one of the two"),
            );
        }
    }
    Some(ClientAuth::AssertionFile { path, assertion_type })
}

/// Returns the given value, and records a mistake if it is missing.
fn required<T>(reader: &mut Reader<'_>, name: &str, needed_by: &str, given: Option<T>) -> Option<T> {
    if given.is_none() && !reader.is_wrong(name) {
        reader.wrong(name, format!("is required with {needed_by}"));
    }
    given
}

fn secret(reader: &mut Reader<'_>, method: &str) -> Option<ClientSecret> {
    let secret = reader.secret("OIDC_CLIENT_SECRET");
    let secret = required(reader, "OIDC_CLIENT_SECRET", method, secret)?;
    let length = secret.expose().chars().count();
    if length < LEAST_SECRET_CHARS {
        reader.wrong(
            "OIDC_CLIENT_SECRET",
            format!("must have at least {LEAST_SECRET_CHARS} characters"),
        );
    } else if length < GOOD_SECRET_CHARS {
        reader.warn(
            "OIDC_CLIENT_SECRET",
            format!("has fewer than {GOOD_SECRET_CHARS} characters"),
        );
    }
    Some(ClientSecret::new(secret.into_inner()))
}

/// Keys for authorization requests, if they are signed.
fn request_keys(reader: &mut Reader<'_>) -> Option<ClientKeys> {
    if !reader.flag("OIDC_SIGNED_REQUESTS") {
        return None;
    }
    keys(reader, "OIDC_SIGNED_REQUESTS")
}

/// The key that tokens are bound to, if they are.
fn dpop_key(reader: &mut Reader<'_>) -> Option<DpopKey> {
    if !reader.choice("OIDC_DPOP", &[("on", true), ("off", false)], false) {
        return None;
    }
    let path = reader.path("OIDC_DPOP_KEY_FILE");
    let path = required(reader, "OIDC_DPOP_KEY_FILE", "OIDC_DPOP=on", path)?;
    let key = text(&path).and_then(|pem| DpopKey::from_pem(&pem).ok());
    if key.is_none() {
        reader.wrong("OIDC_DPOP_KEY_FILE", UNUSABLE);
    }
    key
}

/// The files of the client's keys. The first signs.
pub(crate) fn key_files(reader: &mut Reader<'_>) -> Vec<PathBuf> {
    let files = reader.list("OIDC_CLIENT_KEY_FILE");
    files.into_iter().map(PathBuf::from).collect()
}

const UNUSABLE: &str = "must name readable PEM private keys in PKCS#8 (RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519)";

fn keys(reader: &mut Reader<'_>, needed_by: &str) -> Option<ClientKeys> {
    let files = Some(key_files(reader)).filter(|files| !files.is_empty());
    let files = required(reader, "OIDC_CLIENT_KEY_FILE", needed_by, files)?;
    let keys = files.iter().map(|path| ClientKey::from_pem(&text(path)?).ok());
    let Some(keys) = keys.collect::<Option<Vec<_>>>() else {
        reader.wrong("OIDC_CLIENT_KEY_FILE", UNUSABLE);
        return None;
    };
    let mut keys = keys.into_iter();
    Some(ClientKeys::new(keys.next()?, keys.collect()))
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(chassis::files::read_bounded(path).ok()?).ok()
}

/// The forward proxy, read from the environment as other programs do.
pub(crate) fn proxy(reader: &mut Reader<'_>) -> Option<ForwardProxy> {
    let no_proxy = reader.text("NO_PROXY").replace(' ', ",");
    let members: Vec<&str> = no_proxy.split(',').map(no_proxy_member).collect();
    for member in members.iter().filter(|member| !is_no_proxy_member(member)) {
        let passed_over =
            format!("contains {member:?}, which is not a host, address or network. It is ignored");
        reader.warn("NO_PROXY", passed_over);
    }
    let no_proxy = members.join(",");
    let url = reader.secret("HTTPS_PROXY")?;
    let proxy = ForwardProxy::new(url.expose(), &no_proxy);
    proxy
        .map_err(|problem| reader.wrong("HTTPS_PROXY", problem.to_string()))
        .ok()
}

/// Accepts the forms of other programs: `*.example.com` is `.example.com`, and IPv6 may have brackets.
fn no_proxy_member(member: &str) -> &str {
    let member = member.trim();
    let bare = member.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let domain = member.strip_prefix('*').filter(|rest| rest.starts_with('.'));
    bare.or(domain).unwrap_or(member)
}

fn is_no_proxy_member(member: &str) -> bool {
    let is_name = member
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let address = member.split_once('/').map_or(member, |(address, _)| address);
    member == "*" || is_name || address.parse::<std::net::IpAddr>().is_ok()
}
