//! Certificates of the client side, and the files they came from.

use std::fmt::{Debug, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// Certificates in PEM form: whom to trust, and who we are.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientTls {
    ca: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    files: Option<(PathBuf, Option<(PathBuf, PathBuf)>)>,
}

impl ClientTls {
    /// Trusts `ca`; shows `identity`, a certificate chain and its private key, for mutual TLS.
    #[must_use]
    pub fn from_pem(ca: Vec<u8>, identity: Option<(Vec<u8>, Vec<u8>)>) -> Self {
        Self {
            ca,
            identity,
            files: None,
        }
    }

    /// The same from files. The client reads them again as often as it resolves names and uses what they hold for
    /// connections made from then on; content that cannot be used is passed over with a warning.
    ///
    /// # Errors
    /// A file that cannot be read; the message names it.
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

    /// What the files hold now, if that is something else.
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
