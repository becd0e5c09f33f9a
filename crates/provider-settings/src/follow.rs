//! Takes over client credentials whose files change, without a restart.
//!
//! A file that can not be used is reported in the log, with its setting and what is wrong, and the credentials in use stay.

use std::path::{Path, PathBuf};

use chassis::audit;
use chassis::files;
use chassis::settings::Reader;
use chassis::tls::ShownCertificate;
use oidc::{ClientAuth, ClientKeys, ClientSecret, Credentials, ForwardProxy, RelyingParty};
use tokio::task::JoinHandle;

use crate::credentials::{LEAST_SECRET_CHARS, dpop_key_from, key_files, key_from};

/// The files the client's credentials came from.
#[derive(Clone, Debug, Default)]
pub struct CredentialFiles {
    secret: Option<PathBuf>,
    keys: Vec<PathBuf>,
    dpop_key: Option<PathBuf>,
    proxy: Option<PathBuf>,
    /// The certificate, where it is measured.
    pub(crate) shown: Option<ShownCertificate>,
    /// All of them, with the authorities trusted for the provider.
    all: Vec<PathBuf>,
}

impl CredentialFiles {
    /// Reads which files there are.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let (keys, dpop_key) = (key_files(reader), reader.path("OIDC_DPOP_KEY_FILE"));
        let certificate = reader.path("OIDC_CLIENT_CERT_FILE");
        let authorities = reader.path("OIDC_CA_FILE");
        let plain = [&certificate, &authorities, &dpop_key];
        let secret = reader.secret_file("OIDC_CLIENT_SECRET");
        let plain = plain.into_iter().flatten().chain(&keys).chain(&secret);
        let all = plain.cloned().collect();
        let mut files = Self {
            secret,
            keys,
            dpop_key,
            proxy: None,
            shown: None,
            all,
        };
        files.read_proxy(reader);
        files
    }

    /// Reads the file of the forward proxy, which several providers share.
    pub(crate) fn read_proxy(&mut self, reader: &mut Reader<'_>) {
        self.proxy = reader.secret_file("HTTPS_PROXY");
        self.all.extend(self.proxy.clone());
    }
}

/// Watches the files and hands to `party` what they hold, now and whenever it changes. Needs a tokio runtime; ends with it.
pub fn follow(party: &RelyingParty, files: CredentialFiles) -> Vec<JoinHandle<()>> {
    let mut watches = Vec::new();
    for path in files.all.clone() {
        let (party, files) = (party.clone(), files.clone());
        watches.push(files::watch(
            files::POLL_INTERVAL,
            vec![path.clone()],
            move |_| {
                let outcome = reload(&party, &files);
                audit::reloaded(
                    CREDENTIALS,
                    Some(&path),
                    outcome.as_ref().copied().map_err(|error| &**error),
                );
            },
        ));
    }
    watches
}

fn reload(party: &RelyingParty, files: &CredentialFiles) -> Result<(), Box<dyn std::error::Error>> {
    party.reload(current(party.credentials(), files)?)?;
    if let (Some(shown), ClientAuth::TlsClientAuth { cert_file, .. }) =
        (&files.shown, party.credentials().auth)
    {
        shown.loaded(Some(&cert_file));
    }
    Ok(())
}

/// What audit records call the files of a provider's credentials; the path says which.
const CREDENTIALS: &str = "provider credentials";

/// A file that can not be used, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: the file {} {problem}", path.display())]
struct Unusable {
    setting: &'static str,
    path: PathBuf,
    problem: &'static str,
}

/// The credentials the files hold now, of the same kinds as before.
fn current(before: Credentials, files: &CredentialFiles) -> Result<Credentials, Unusable> {
    let secret = || files.secret.as_deref().map(secret).transpose();
    let auth = match before.auth {
        ClientAuth::SecretByMetadata(old) => ClientAuth::SecretByMetadata(secret()?.unwrap_or(old)),
        ClientAuth::SecretBasic(old) => ClientAuth::SecretBasic(secret()?.unwrap_or(old)),
        ClientAuth::SecretPost(old) => ClientAuth::SecretPost(secret()?.unwrap_or(old)),
        ClientAuth::PrivateKeyJwt(_) => ClientAuth::PrivateKeyJwt(keys(files)?),
        unchanged @ (ClientAuth::TlsClientAuth { .. } | ClientAuth::None) => unchanged,
    };
    let request_keys = match before.request_keys {
        Some(_) => Some(keys(files)?),
        None => None,
    };
    let dpop_key = match (before.dpop_key, &files.dpop_key) {
        (Some(_), Some(path)) => Some(dpop_key_from(path).ok_or_else(|| Unusable {
            setting: "OIDC_DPOP_KEY_FILE",
            path: path.clone(),
            problem: NO_KEY,
        })?),
        (before, _) => before,
    };
    let proxy = match (before.proxy, &files.proxy) {
        (Some(before), Some(path)) => Some(moved(&before, path)?),
        (before, _) => before,
    };
    Ok(Credentials {
        auth,
        request_keys,
        dpop_key,
        proxy,
    })
}

const NO_KEY: &str =
    "holds no PEM private key in PKCS#8 (RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519)";

fn keys(files: &CredentialFiles) -> Result<ClientKeys, Unusable> {
    let unusable = |path: &PathBuf| Unusable {
        setting: "OIDC_CLIENT_KEY_FILE",
        path: path.clone(),
        problem: NO_KEY,
    };
    let read = |path: &PathBuf| key_from(path).ok_or_else(|| unusable(path));
    let mut keys = files.keys.iter().map(read);
    let first = keys.next().ok_or_else(|| unusable(&PathBuf::new()))??;
    Ok(ClientKeys::new(first, keys.collect::<Result<_, _>>()?))
}

fn moved(proxy: &ForwardProxy, path: &Path) -> Result<ForwardProxy, Unusable> {
    let bytes = chassis::files::read_bounded(path).unwrap_or_default();
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    proxy.moved(text.trim()).map_err(|_no_url| Unusable {
        setting: "HTTPS_PROXY_FILE",
        path: path.to_path_buf(),
        problem: "holds no URL of a proxy such as http://user:password@proxy.example:3128",
    })
}

fn secret(path: &Path) -> Result<ClientSecret, Unusable> {
    let bytes = chassis::files::read_bounded(path).unwrap_or_default();
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let text = text.trim_end_matches(['\r', '\n']);
    if text.chars().count() < LEAST_SECRET_CHARS {
        return Err(Unusable {
            setting: "OIDC_CLIENT_SECRET_FILE",
            path: path.to_path_buf(),
            problem: "holds no text of at least 8 characters",
        });
    }
    Ok(ClientSecret::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_usable_secret_changes_nothing() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (text, usable) in [
            ("", false),
            ("\n", false),
            ("seven77\n", false),
            ("eight888\n", true),
        ] {
            std::fs::write(file.path(), text).expect("written");
            assert_eq!(secret(file.path()).is_ok(), usable, "{text:?}");
        }
        assert!(secret(Path::new("/nowhere/secret")).is_err());
    }
}
