//! TLS for our own listeners: PEM files, read again when they change.
//!
//! A new certificate is used from the next connection on; files that cannot be used keep the old one in use.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::files;
use crate::secret::Reloading;

/// The files of a TLS listener.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
    /// Whose client certificates are believed; with it every client needs one.
    pub client_ca: Option<PathBuf>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not PEM of the right kind, or cannot be read.
    #[error("{path} cannot be used")]
    File {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The key does not belong to the certificate, or has a form that is not supported.
    #[error("the certificate and key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The client CA file holds nothing that can be trusted.
    #[error("the client CA cannot be used")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
}

/// A TLS configuration that follows its files.
#[derive(Clone, Debug)]
pub struct ServerTls(Reloading<Arc<ServerConfig>>);

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self(Reloading::new(Arc::new(config(files)?))))
    }

    /// Reads the files again whenever one changes. Needs a tokio runtime; ends with it.
    pub fn follow(&self, tls_files: TlsFiles) {
        let paths = [
            Some(&tls_files.certificate),
            Some(&tls_files.key),
            tls_files.client_ca.as_ref(),
        ];
        let paths: Vec<PathBuf> = paths.into_iter().flatten().cloned().collect();
        let current = self.0.clone();
        files::watch_from(None, files::POLL_INTERVAL, paths, move |_| {
            match config(&tls_files) {
                Ok(config) => current.store(Arc::new(config)),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the changed certificate is refused: the old one stays in use"
                    );
                }
            }
        });
    }

    /// The configuration for the next connection.
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.load())
    }
}

fn config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|source| of_file(&files.key, source))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(TlsError::Pair)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(TlsError::ClientCa)?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|source| of_file(path, source))
}

fn of_file(path: &std::path::Path, source: rustls::pki_types::pem::Error) -> TlsError {
    TlsError::File {
        path: path.display().to_string(),
        source,
    }
}
