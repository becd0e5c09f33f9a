//! PEM files: read the same way at the start, when they change, and when settings are judged.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};

use crate::files;

/// Why a file of certificates or of a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// The file is not there, or not for us.
    #[error("{} cannot be read: check that it exists and is readable for this user", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file begins as PEM and does not go on so.
    #[error("{} is broken PEM: write the file anew", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where it breaks.
        source: rustls::pki_types::pem::Error,
    },
    /// The file of a certificate holds a key.
    #[error("{} holds a private key and no certificate: were the two files swapped?", path.display())]
    KeyForCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file of a certificate holds something else.
    #[error("{} holds no certificate in PEM (BEGIN CERTIFICATE)", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file of a key holds a certificate.
    #[error("{} holds a certificate and no private key: were the two files swapped?", path.display())]
    CertificateForKey {
        /// The file.
        path: PathBuf,
    },
    /// The file of a key holds something else.
    #[error("{} holds no private key in PEM (BEGIN PRIVATE KEY, without a passphrase)", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// What stands in the file as a certificate is none.
    #[error("{} holds a certificate that cannot be understood: write the file anew", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The key is of a kind that is not supported.
    #[error("{} holds a key of a kind that is not supported: make one with P-256, P-384, Ed25519 or RSA of at least 2048 bits", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The key is that of another certificate.
    #[error("the key in {} does not belong to the certificate in {}: give the two that were made together", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
}

impl PemError {
    /// Whether the key's file is the one to change.
    pub(super) fn is_about_the_key(&self) -> bool {
        use PemError::{CertificateForKey, Key, Mismatch, NoKey};
        matches!(
            self,
            CertificateForKey { .. } | NoKey { .. } | Key { .. } | Mismatch { .. }
        )
    }
}

/// The certificates of a file, its first being that of whoever shows the chain.
///
/// # Errors
/// The file cannot be read or holds none.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let text = read(path)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|source| broken(path, source))?;
    if !found.is_empty() {
        return Ok(found);
    }
    let path = path.to_owned();
    Err(match PrivateKeyDer::from_pem_slice(&text) {
        Ok(_) => PemError::KeyForCertificate { path },
        Err(_) => PemError::NoCertificate { path },
    })
}

/// The private key of a file.
///
/// # Errors
/// The file cannot be read or holds none.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    use rustls::pki_types::pem::Error::NoItemsFound;
    let text = read(path)?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(key) => Ok(key),
        Err(NoItemsFound) => {
            let path = path.to_owned();
            Err(match CertificateDer::from_pem_slice(&text) {
                Ok(_) => PemError::CertificateForKey { path },
                Err(_) => PemError::NoKey { path },
            })
        }
        Err(source) => Err(broken(path, source)),
    }
}

/// The authorities of a file.
///
/// # Errors
/// The file cannot be read, or holds none that can be understood.
pub fn authorities(path: &Path) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(certificates(path)?);
    if added == 0 {
        return Err(PemError::Certificate {
            path: path.to_owned(),
            source: rustls::Error::InvalidCertificate(rustls::CertificateError::BadEncoding),
        });
    }
    Ok(roots)
}

/// Whether the certificate of a chain and the key belong together, as a TLS configuration is going to ask.
pub(super) fn belong_together(
    (certificate, chain): (&Path, &[CertificateDer<'static>]),
    (key, private): (&Path, &PrivateKeyDer<'static>),
) -> Result<(), PemError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Err(source) = CertifiedKey::from_der(chain.to_vec(), private.clone_key(), &provider) else {
        return Ok(());
    };
    Err(match source {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => PemError::Mismatch {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        },
        rustls::Error::InvalidCertificate(_) => PemError::Certificate {
            path: certificate.to_owned(),
            source,
        },
        _ => PemError::Key {
            path: key.to_owned(),
            source,
        },
    })
}

fn read(path: &Path) -> Result<Vec<u8>, PemError> {
    files::read_bounded(path).map_err(|source| PemError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn broken(path: &Path, source: rustls::pki_types::pem::Error) -> PemError {
    PemError::Broken {
        path: path.to_owned(),
        source,
    }
}
