//! TLS for our own listeners: PEM files, read again when they change.
//!
//! New connections use the new certificate. If the new files cannot be used, the old certificate stays. A client
//! certificate must stay acceptable for as long as its connection lasts. So the listener checks it again when
//! files change, and regularly because certificates expire.

mod fault;
mod peer;
mod pem;
mod settings;
mod validity;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::sync::watch;

pub use fault::{TlsFault, expires_by, names_in};
pub use peer::PeerCertificate;
pub use pem::{PemError, authorities};
pub use settings::{check_authorities, check_pair, read_authorities, read_pair};
pub use validity::{CertificateGauges, CertificateMetrics};

use crate::audit;
use crate::files;
use crate::secret::Reloading;

/// Interval for checking a connection's certificate again. After it expires, the connection lasts at most this
/// much longer. A check takes about a tenth of a millisecond.
const RECHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The files of a TLS listener.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
    /// Authorities of client certificates. If set, every client needs a certificate.
    pub client_ca: Option<PathBuf>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PemError),
    /// The certificate and key are refused.
    #[error("the certificate and key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The client CA file holds nothing that can be trusted.
    #[error("the client CA cannot be used")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
}

/// The name of a listener's certificates in audit records; the path says which listener.
const LISTENER_CERTIFICATES: &str = "TLS_CERT_FILE";

/// A TLS configuration that follows its files.
#[derive(Clone, Debug)]
pub struct ServerTls {
    current: Reloading<LoadedTls>,
    changes: watch::Sender<()>,
    recheck: Duration,
    shown: Option<CertificateGauges>,
}

#[derive(Debug)]
struct LoadedTls {
    config: Arc<ServerConfig>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self {
            current: Reloading::new(load(files)?),
            changes: watch::Sender::new(()),
            recheck: RECHECK_INTERVAL,
            shown: None,
        })
    }

    /// Sets the interval for checking the certificates of open connections.
    #[must_use]
    pub fn recheck_every(mut self, interval: Duration) -> Self {
        self.recheck = interval;
        self
    }

    /// Reports the certificate in use whenever [`Self::follow`] has read its files.
    #[must_use]
    pub fn measured(mut self, metrics: &CertificateMetrics) -> Self {
        self.shown = Some(metrics.of("server", ""));
        self
    }

    /// Reads the files now and after each change, checked every `every`. Needs a tokio runtime; ends with it.
    pub fn follow(&self, every: Duration, tls_files: TlsFiles) {
        let paths = [
            Some(&tls_files.certificate),
            Some(&tls_files.key),
            tls_files.client_ca.as_ref(),
        ];
        let paths: Vec<PathBuf> = paths.into_iter().flatten().cloned().collect();
        let (current, changes, shown) = (self.current.clone(), self.changes.clone(), self.shown.clone());
        files::watch(every, paths, move |_| {
            let certificate = Some(tls_files.certificate.as_path());
            let outcome = load(&tls_files).map(|loaded| {
                current.store(loaded);
                changes.send_replace(());
                if let Some(shown) = &shown {
                    shown.loaded(certificate);
                }
            });
            let outcome = outcome
                .as_ref()
                .copied()
                .map_err(|error| error as &dyn std::error::Error);
            audit::reloaded(LISTENER_CERTIFICATES, certificate, outcome);
        });
    }

    /// The configuration for the next connection.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// Whether a client with this chain, its own certificate first, would be accepted now.
    pub(crate) fn believes(&self, chain: &[CertificateDer<'static>]) -> bool {
        match (&self.current.load().clients, chain) {
            (None, _) => true,
            (Some(_), []) => false,
            (Some(clients), [own, others @ ..]) => {
                clients.verify_client_cert(own, others, UnixTime::now()).is_ok()
            }
        }
    }

    /// Resolves once a client with this chain would no longer be accepted.
    pub(crate) async fn disbelieves(&self, chain: &[CertificateDer<'static>]) {
        let mut changes = self.changes.subscribe();
        while self.believes(chain) {
            // An error means that no further change will come; time still passes.
            let changed = async {
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            let _ = tokio::time::timeout(self.recheck, changed).await;
        }
    }
}

fn load(files: &TlsFiles) -> Result<LoadedTls, TlsError> {
    let chain = pem::certificates(&files.certificate)?;
    let key = pem::private_key(&files.key)?;
    pem::belong_together((&files.certificate, &chain), (&files.key, &key))?;
    let clients = files.client_ca.as_deref().map(clients).transpose()?;
    let builder =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(TlsError::Pair)?;
    let builder = match &clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients)),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(LoadedTls {
        config: Arc::new(config),
        clients,
    })
}

fn clients(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = Arc::new(pem::authorities(path)?);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    WebPkiClientVerifier::builder_with_provider(roots, provider)
        .build()
        .map_err(TlsError::ClientCa)
}
