//! Takes over client credentials whose files change, without a restart.
//!
//! A file that can not be used is told to the log and the credentials in use stay.

use std::path::PathBuf;

use chassis::settings::Reader;
use oidc::{ClientAuth, ClientSecret, Credentials, RelyingParty};
use tokio::task::JoinHandle;

use crate::credentials::{dpop_key_from, key_files, keys_from};

/// The files the client's credentials came from.
#[derive(Clone, Debug, Default)]
pub struct CredentialFiles {
    secret: Option<PathBuf>,
    keys: Vec<PathBuf>,
    certificate: Option<PathBuf>,
    authorities: Option<PathBuf>,
    dpop_key: Option<PathBuf>,
}

impl CredentialFiles {
    /// Reads which files there are.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            secret: reader.secret_file("OIDC_CLIENT_SECRET"),
            keys: key_files(reader),
            certificate: reader.path("OIDC_CLIENT_CERT_FILE"),
            authorities: reader.path("OIDC_CA_FILE"),
            dpop_key: reader.path("OIDC_DPOP_KEY_FILE"),
        }
    }
}

/// Watches the files and hands changed credentials to `party`. Needs a tokio runtime; ends with it.
pub fn follow(party: &RelyingParty, files: CredentialFiles) -> Vec<JoinHandle<()>> {
    let single = [
        &files.secret,
        &files.certificate,
        &files.authorities,
        &files.dpop_key,
    ];
    let paths = single.into_iter().flatten().chain(&files.keys);
    let mut watches = Vec::new();
    for path in paths {
        let (party, files) = (party.clone(), files.clone());
        watches.push(chassis::files::watch(path, move |_| take_over(&party, &files)));
    }
    watches
}

fn take_over(party: &RelyingParty, files: &CredentialFiles) {
    let Some(credentials) = current(party.credentials(), files) else {
        tracing::warn!(
            "the provider credentials' file changed to something unusable; the earlier ones stay in use"
        );
        return;
    };
    match party.reload(credentials) {
        Ok(()) => tracing::info!("took over changed provider credentials"),
        Err(error) => {
            tracing::warn!(%error, "changed provider credentials can not be used; the earlier ones stay");
        }
    }
}

/// The credentials the files hold now, of the same kinds as before.
fn current(before: Credentials, files: &CredentialFiles) -> Option<Credentials> {
    let auth = match before.auth {
        ClientAuth::SecretBasic(_) if files.secret.is_some() => ClientAuth::SecretBasic(secret(files)?),
        ClientAuth::SecretPost(_) if files.secret.is_some() => ClientAuth::SecretPost(secret(files)?),
        ClientAuth::PrivateKeyJwt(_) => ClientAuth::PrivateKeyJwt(keys_from(&files.keys)?),
        unchanged @ (ClientAuth::SecretBasic(_)
        | ClientAuth::SecretPost(_)
        | ClientAuth::TlsClientAuth { .. }
        | ClientAuth::None) => unchanged,
    };
    let request_keys = match before.request_keys {
        Some(_) => Some(keys_from(&files.keys)?),
        None => None,
    };
    let dpop_key = match before.dpop_key {
        Some(_) => Some(dpop_key_from(files.dpop_key.as_ref()?)?),
        None => None,
    };
    Some(Credentials {
        auth,
        request_keys,
        dpop_key,
    })
}

fn secret(files: &CredentialFiles) -> Option<ClientSecret> {
    let bytes = chassis::files::read_bounded(files.secret.as_ref()?).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?.trim_end_matches(['\r', '\n']);
    (!text.is_empty()).then(|| ClientSecret::new(text))
}
