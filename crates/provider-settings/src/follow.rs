//! Takes over client credentials whose files change, without a restart.
//!
//! A file that can not be used is told to the log and the credentials in use stay.

use std::path::PathBuf;

use chassis::settings::Reader;
use oidc::{ClientAuth, ClientSecret, RelyingParty};
use tokio::task::JoinHandle;

use crate::credentials::key_from;

/// The files the client's credentials came from.
#[derive(Clone, Debug, Default)]
pub struct CredentialFiles {
    secret: Option<PathBuf>,
    key: Option<PathBuf>,
    certificate: Option<PathBuf>,
    authorities: Option<PathBuf>,
}

impl CredentialFiles {
    /// Reads which files there are.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            secret: reader.secret_file("OIDC_CLIENT_SECRET"),
            key: reader.path("OIDC_CLIENT_KEY_FILE"),
            certificate: reader.path("OIDC_CLIENT_CERT_FILE"),
            authorities: reader.path("OIDC_CA_FILE"),
        }
    }
}

/// Watches the files and hands changed credentials to `party`. Needs a tokio runtime; ends with it.
pub fn follow(party: &RelyingParty, files: CredentialFiles) -> Vec<JoinHandle<()>> {
    let paths = [&files.secret, &files.key, &files.certificate, &files.authorities];
    let mut watches = Vec::new();
    for path in paths.into_iter().flatten() {
        let (party, files) = (party.clone(), files.clone());
        watches.push(chassis::files::watch(path, move |_| take_over(&party, &files)));
    }
    watches
}

fn take_over(party: &RelyingParty, files: &CredentialFiles) {
    let Some(auth) = current(party.client_auth(), files) else {
        tracing::warn!(
            "the provider credentials' file changed to something unusable; the earlier ones stay in use"
        );
        return;
    };
    match party.reload(auth) {
        Ok(()) => tracing::info!("took over changed provider credentials"),
        Err(error) => {
            tracing::warn!(%error, "changed provider credentials can not be used; the earlier ones stay");
        }
    }
}

/// The credentials the files hold now, of the same method as before.
fn current(before: ClientAuth, files: &CredentialFiles) -> Option<ClientAuth> {
    Some(match before {
        ClientAuth::SecretBasic(_) if files.secret.is_some() => ClientAuth::SecretBasic(secret(files)?),
        ClientAuth::SecretPost(_) if files.secret.is_some() => ClientAuth::SecretPost(secret(files)?),
        ClientAuth::PrivateKeyJwt(_) => ClientAuth::PrivateKeyJwt(key_from(files.key.as_ref()?)?),
        unchanged @ (ClientAuth::SecretBasic(_)
        | ClientAuth::SecretPost(_)
        | ClientAuth::TlsClientAuth { .. }
        | ClientAuth::None) => unchanged,
    })
}

fn secret(files: &CredentialFiles) -> Option<ClientSecret> {
    let bytes = chassis::files::read_bounded(files.secret.as_ref()?).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?.trim_end_matches(['\r', '\n']);
    (!text.is_empty()).then(|| ClientSecret::new(text))
}
