//! The client's credentials: which method, and whether it has all it needs.

use std::path::{Path, PathBuf};

use chassis::settings::Reader;
use chassis::tls;
use oidc::{ClientAuth, ClientKey, ClientKeys, ClientSecret, DpopKey};

/// Shorter secrets can be guessed.
pub(crate) const LEAST_SECRET_CHARS: usize = 8;
/// Shorter secrets deserve a warning.
const GOOD_SECRET_CHARS: usize = 32;

/// Reads the method and what belongs to it; `None` when a mistake was recorded.
pub(crate) fn client_auth(reader: &mut Reader<'_>) -> Option<ClientAuth> {
    let method = reader.text("OIDC_CLIENT_AUTH_METHOD");
    match method.as_str() {
        "client_secret_basic" if !reader.is_given("OIDC_CLIENT_AUTH_METHOD") => {
            secret(reader, &method).map(ClientAuth::SecretByMetadata)
        }
        "client_secret_basic" => secret(reader, &method).map(ClientAuth::SecretBasic),
        "client_secret_post" => secret(reader, &method).map(ClientAuth::SecretPost),
        "private_key_jwt" => keys(reader, "private_key_jwt").map(ClientAuth::PrivateKeyJwt),
        "tls_client_auth" => {
            let cert_file = reader.path("OIDC_CLIENT_CERT_FILE");
            let key_file = key_files(reader).into_iter().next();
            for (name, given) in [
                ("OIDC_CLIENT_CERT_FILE", cert_file.is_some()),
                ("OIDC_CLIENT_KEY_FILE", key_file.is_some()),
            ] {
                if !given {
                    reader.wrong(name, "is required by tls_client_auth");
                }
            }
            let (cert_file, key_file) = (cert_file?, key_file?);
            let certificate = ("OIDC_CLIENT_CERT_FILE", cert_file.as_path());
            let key = ("OIDC_CLIENT_KEY_FILE", key_file.as_path());
            // The client made of them would say less, and of no file.
            tls::judge_pair(reader, certificate, key)
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
                "must be client_secret_basic, client_secret_post, private_key_jwt, tls_client_auth or none",
            );
            None
        }
    }
}

fn secret(reader: &mut Reader<'_>, method: &str) -> Option<ClientSecret> {
    let Some(secret) = reader.secret("OIDC_CLIENT_SECRET") else {
        if !reader.is_given("OIDC_CLIENT_SECRET") {
            reader.wrong("OIDC_CLIENT_SECRET", format!("is required by {method}"));
        }
        return None;
    };
    let length = secret.expose().chars().count();
    if length < LEAST_SECRET_CHARS {
        reader.wrong(
            "OIDC_CLIENT_SECRET",
            format!("must have at least {LEAST_SECRET_CHARS} characters"),
        );
        return None;
    }
    if length < GOOD_SECRET_CHARS {
        reader.warn(
            "OIDC_CLIENT_SECRET",
            format!("has fewer than {GOOD_SECRET_CHARS} characters"),
        );
    }
    Some(ClientSecret::new(secret.into_inner()))
}

/// Keys for authorization requests, when they are signed.
pub(crate) fn request_keys(reader: &mut Reader<'_>) -> Option<ClientKeys> {
    if !reader.flag("OIDC_SIGNED_REQUESTS") {
        return None;
    }
    keys(reader, "OIDC_SIGNED_REQUESTS")
}

/// The key tokens are bound to, when they are.
pub(crate) fn dpop_key(reader: &mut Reader<'_>) -> Option<DpopKey> {
    if !reader.choice("OIDC_DPOP", &[("on", true), ("off", false)], false) {
        return None;
    }
    let Some(path) = reader.path("OIDC_DPOP_KEY_FILE") else {
        reader.wrong("OIDC_DPOP_KEY_FILE", "is required by OIDC_DPOP=on");
        return None;
    };
    let key = dpop_key_from(&path);
    if key.is_none() {
        reader.wrong("OIDC_DPOP_KEY_FILE", UNUSABLE);
    }
    key
}

/// The files of the client's keys, the one that signs first.
pub(crate) fn key_files(reader: &mut Reader<'_>) -> Vec<PathBuf> {
    let files = reader.list("OIDC_CLIENT_KEY_FILE");
    files.into_iter().map(PathBuf::from).collect()
}

const UNUSABLE: &str = "must name readable PEM private keys in PKCS#8 (RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519)";

fn keys(reader: &mut Reader<'_>, needed_by: &str) -> Option<ClientKeys> {
    let files = key_files(reader);
    if files.is_empty() {
        reader.wrong("OIDC_CLIENT_KEY_FILE", format!("is required by {needed_by}"));
        return None;
    }
    let keys = keys_from(&files);
    if keys.is_none() {
        reader.wrong("OIDC_CLIENT_KEY_FILE", UNUSABLE);
    }
    keys
}

/// The keys in files, if every one of them is usable.
fn keys_from(files: &[PathBuf]) -> Option<ClientKeys> {
    let keys = files.iter().map(|path| key_from(path));
    let mut keys = keys.collect::<Option<Vec<_>>>()?.into_iter();
    Some(ClientKeys::new(keys.next()?, keys.collect()))
}

/// The key of this client in a file, if it is usable.
pub(crate) fn key_from(path: &Path) -> Option<ClientKey> {
    ClientKey::from_pem(&text(path)?).ok()
}

/// The key in a file, if it is usable.
pub(crate) fn dpop_key_from(path: &Path) -> Option<DpopKey> {
    DpopKey::from_pem(&text(path)?).ok()
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(chassis::files::read_bounded(path).ok()?).ok()
}
