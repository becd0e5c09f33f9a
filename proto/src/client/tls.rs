//! Certificates of the client, and their files.

use std::fmt::{Debug, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// Certificates in PEM form: those to trust, and the client's own.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientTls {
    ca: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    files: Option<(PathBuf, Option<(PathBuf, PathBuf)>)>,
}

impl ClientTls {
    /// Trusts `ca`. Presents `identity`, a certificate chain and its private key, for mutual TLS.
    #[must_use]
    pub fn from_pem(ca: Vec<u8>, identity: Option<(Vec<u8>, Vec<u8>)>) -> Self {
        Self {
            ca,
            identity,
            files: None,
        }
    }

    /// Like [`Self::from_pem`], from files. The client reads them again whenever it resolves names, and uses
    /// new content for later connections. It logs a warning about unusable content and ignores it.
    ///
    /// # Errors
    /// A file cannot be read; the message names it.
    pub fn from_files(ca: PathBuf, identity: Option<(PathBuf, PathBuf)>) -> io::Result<Self> {
        let own = match &identity {
            Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
            None => None,
        };
        Ok(Self {
            ca: read(&ca)?,
            identity: own,
            files: Some((ca, identity)),
        })
    }

    /// The content of the files, if it changed.
    pub(super) async fn renewed(&self) -> Option<Self> {
        let (ca, identity) = self.files.clone()?;
        let again = tokio::task::spawn_blocking(move || Self::from_files(ca, identity)).await;
        match again {
            Ok(Ok(tls)) => (tls != *self).then_some(tls),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "certificates for the session service cannot be read again"
                );
                None
            }
            Err(_shutting_down) => None,
        }
    }

    pub(super) fn config(&self) -> ClientTlsConfig {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.ca));
        match &self.identity {
            Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
            None => config,
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    std::fs::read(path).map_err(named)
}

impl Debug for ClientTls {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls")
            .field("identity", &self.identity.is_some())
            .field("follows_files", &self.files.is_some())
            .finish_non_exhaustive()
    }
}
