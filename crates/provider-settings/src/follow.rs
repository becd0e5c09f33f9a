//! Reloads client credentials when their files change, without a restart.
//!
//! Reads the settings again by the rules of the start. After a mistake, it logs it and keeps the old credentials.

use std::error::Error;
use std::path::PathBuf;

use chassis::audit;
use chassis::files;
use chassis::secret::Secret;
use chassis::settings::{Reader, Source};
use chassis::tls::CertificateGauges;
use oidc::{ClientAuth, RelyingParty};

use crate::credentials::{credentials, key_files};
use crate::table::{ONE_PROVIDER, TOPIC};

/// The files that contain the client's credentials.
#[derive(Clone, Debug, Default)]
pub struct CredentialFiles {
    /// The given settings by variable. A secret from a file has the file's variable and path.
    given: Vec<(String, Secret<String>)>,
    /// The metric of the certificate, if there is one.
    pub(crate) shown: Option<CertificateGauges>,
    /// All files, including the authorities to trust for the provider.
    all: Vec<PathBuf>,
}

impl CredentialFiles {
    /// Reads the names of the files.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let mut paths = key_files(reader);
        let single = ["OIDC_CLIENT_CERT_FILE", "OIDC_CA_FILE", "OIDC_DPOP_KEY_FILE"];
        paths.extend(single.into_iter().filter_map(|name| reader.path(name)));
        let mut files = Self {
            all: paths,
            ..Self::default()
        };
        files.keep_given(reader);
        files
    }

    /// Keeps the settings of this reader. The forward proxy is a setting of the process, not of a provider's table.
    pub(crate) fn keep_given(&mut self, reader: &mut Reader<'_>) {
        for setting in TOPIC.settings {
            if let Some(file) = reader.secret_file(setting.name) {
                let path = file.display().to_string();
                self.given.push((setting.file_variable(), Secret::new(path)));
                self.all.push(file);
            } else if reader.is_given(setting.name) {
                let text = reader.text(setting.name);
                self.given.push((setting.name.to_owned(), Secret::new(text)));
            }
        }
    }
}

/// Watches the files and gives their contents to `party`, now and after each change. Needs a tokio runtime.
pub fn follow(party: &RelyingParty, files: &CredentialFiles) {
    for path in files.all.clone() {
        let (party, files, paths) = (party.clone(), files.clone(), vec![path.clone()]);
        files::watch(files::POLL_INTERVAL, paths, move |_| {
            let outcome = reload(&party, &files);
            audit::reloaded(
                CREDENTIALS,
                Some(&path),
                outcome.as_ref().copied().map_err(|error| &**error),
            );
        });
    }
}

/// The name of these files in audit records, which also contain the path.
const CREDENTIALS: &str = "provider credentials";

fn reload(party: &RelyingParty, files: &CredentialFiles) -> Result<(), Box<dyn Error>> {
    let given = files.given.iter();
    let given = given.map(|(name, text)| (name.as_str(), text.expose().as_str()));
    let source = Source::from_pairs(&ONE_PROVIDER, &given.collect::<Vec<_>>());
    let mut reader = Reader::new(&source);
    let credentials = credentials(&mut reader);
    let (credentials, _warnings) = reader.finish(credentials).map_err(|wrong| {
        let mistakes = wrong.mistakes.iter();
        let mistakes = mistakes.map(|mistake| format!("{}: {}", mistake.name, mistake.text));
        mistakes.collect::<Vec<_>>().join("; ")
    })?;
    party.reload(credentials)?;
    if let (Some(shown), ClientAuth::TlsClientAuth { cert_file, .. }) =
        (&files.shown, party.credentials().auth)
    {
        shown.loaded(Some(&cert_file));
    }
    Ok(())
}
