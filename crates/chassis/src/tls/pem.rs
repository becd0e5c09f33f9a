//! PEM files: start, reload and the settings check read them the same way.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};

use crate::files;

const BROKEN: &str = "is broken PEM: create the file again";
const UNREADABLE_CERTIFICATE: &str = "contains an invalid certificate: create the file again";

/// Why a file of certificates or of a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} {fault}", path.display())]
pub struct PemError {
    path: PathBuf,
    fault: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl PemError {
    fn new(path: &Path, fault: &str) -> Self {
        Self {
            path: path.to_owned(),
            fault: fault.to_owned(),
            source: None,
        }
    }

    fn because(self, source: impl Error + Send + Sync + 'static) -> Self {
        let source = Some(Box::from(source));
        Self { source, ..self }
    }

    /// The file to change.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The certificate chain of a file, starting with the owner's certificate.
///
/// # Errors
/// The file cannot be read or holds none.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let text = read(path)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|source| PemError::new(path, BROKEN).because(source))?;
    match (found.is_empty(), PrivateKeyDer::from_pem_slice(&text)) {
        (false, _) => Ok(found),
        (true, Ok(_)) => Err(PemError::new(
            path,
            "holds a private key and no certificate: were the two files swapped?",
        )),
        (true, Err(_)) => Err(PemError::new(
            path,
            "holds no certificate in PEM (BEGIN CERTIFICATE)",
        )),
    }
}

/// The private key of a file.
///
/// # Errors
/// The file cannot be read or holds none.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    use rustls::pki_types::pem::Error::NoItemsFound;
    let text = read(path)?;
    let holds_certificate = CertificateDer::from_pem_slice(&text).is_ok();
    PrivateKeyDer::from_pem_slice(&text).map_err(|source| match source {
        NoItemsFound if holds_certificate => PemError::new(
            path,
            "holds a certificate and no private key: were the two files swapped?",
        ),
        NoItemsFound => PemError::new(
            path,
            "holds no private key in PEM (BEGIN PRIVATE KEY, without a passphrase)",
        ),
        source => PemError::new(path, BROKEN).because(source),
    })
}

/// The authorities of a file.
///
/// # Errors
/// The file cannot be read, or has no readable authority.
pub fn authorities(path: &Path) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(certificates(path)?);
    match added {
        0 => Err(PemError::new(path, UNREADABLE_CERTIFICATE)),
        _ => Ok(roots),
    }
}

/// Whether a certificate chain and a key match, by the check of a TLS configuration.
pub(super) fn belong_together(
    (certificate, chain): (&Path, &[CertificateDer<'static>]),
    (key, private): (&Path, &PrivateKeyDer<'static>),
) -> Result<(), PemError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let Err(source) = CertifiedKey::from_der(chain.to_vec(), private.clone_key(), &provider) else {
        return Ok(());
    };
    Err(match source {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => PemError::new(
            key,
            &format!(
                "holds a key that does not belong to the certificate in {}: give the two that were made together",
                certificate.display()
            ),
        ),
        rustls::Error::InvalidCertificate(_) => {
            PemError::new(certificate, UNREADABLE_CERTIFICATE).because(source)
        }
        _ => PemError::new(
            key,
            "holds a key of a kind that is not supported: make one with P-256, P-384, Ed25519 or RSA of at least 2048 bits",
        )
        .because(source),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, PemError> {
    let fault = "cannot be read: check that it exists and is readable for this user";
    files::read_bounded(path).map_err(|source| PemError::new(path, fault).because(source))
}
