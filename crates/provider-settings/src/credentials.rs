//! The client's credentials: which method, and whether it has all it needs.

use std::path::Path;

use chassis::settings::Reader;
use oidc::{ClientAuth, ClientKey, ClientSecret};

/// Shorter secrets can be guessed.
const LEAST_SECRET_CHARS: usize = 8;
/// Shorter secrets deserve a warning.
const GOOD_SECRET_CHARS: usize = 32;

/// Reads the method and what belongs to it; `None` when a mistake was recorded.
pub(crate) fn client_auth(reader: &mut Reader<'_>) -> Option<ClientAuth> {
    let method = reader.text("OIDC_CLIENT_AUTH_METHOD");
    match method.as_str() {
        "client_secret_basic" => secret(reader, &method).map(ClientAuth::SecretBasic),
        "client_secret_post" => secret(reader, &method).map(ClientAuth::SecretPost),
        "private_key_jwt" => key(reader).map(ClientAuth::PrivateKeyJwt),
        "tls_client_auth" => {
            let cert_file = reader.path("OIDC_CLIENT_CERT_FILE");
            let key_file = reader.path("OIDC_CLIENT_KEY_FILE");
            for (name, given) in [
                ("OIDC_CLIENT_CERT_FILE", cert_file.is_some()),
                ("OIDC_CLIENT_KEY_FILE", key_file.is_some()),
            ] {
                if !given {
                    reader.wrong(name, "is required by tls_client_auth");
                }
            }
            Some(ClientAuth::TlsClientAuth {
                cert_file: cert_file?,
                key_file: key_file?,
            })
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

fn key(reader: &mut Reader<'_>) -> Option<ClientKey> {
    let Some(path) = reader.path("OIDC_CLIENT_KEY_FILE") else {
        reader.wrong("OIDC_CLIENT_KEY_FILE", "is required by private_key_jwt");
        return None;
    };
    let key = key_from(&path);
    if key.is_none() {
        reader.wrong(
            "OIDC_CLIENT_KEY_FILE",
            "must name a readable PEM private key in PKCS#8 (RSA of at least 2048 bits, P-256 or Ed25519)",
        );
    }
    key
}

/// The key in a file, if there is a usable one.
pub(crate) fn key_from(path: &Path) -> Option<ClientKey> {
    let bytes = chassis::files::read_bounded(path).ok()?;
    ClientKey::from_pem(std::str::from_utf8(&bytes).ok()?).ok()
}
