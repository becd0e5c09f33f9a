//! The identity that a client proved in the TLS handshake.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;

/// Request extension: the names in the client's verified certificate. Only subject alternative names count
/// (RFC 5280, section 4.2.1.6), never the common name (RFC 9525, section 2).
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    /// The URIs, unchanged from the certificate.
    pub uris: Arc<[String]>,
    /// The DNS names, unchanged from the certificate; some may start with a wildcard.
    pub dns_names: Arc<[String]>,
    /// Cancelled once the certificate expires or its authority is no longer trusted. The connection accepts
    /// no further request then.
    pub disbelieved: CancellationToken,
}

impl PeerCertificate {
    /// Reads the names of a verified certificate. An unreadable one has no names.
    pub(crate) fn of(verified: &CertificateDer<'_>) -> Self {
        let certificate = webpki::EndEntityCert::try_from(verified).ok();
        let certificate = certificate.iter();
        let uris = certificate.clone().flat_map(|own| own.valid_uri_names());
        let dns_names = certificate.flat_map(|own| own.valid_dns_names());
        Self {
            uris: uris.map(str::to_owned).collect(),
            dns_names: dns_names.map(str::to_owned).collect(),
            disbelieved: CancellationToken::new(),
        }
    }
}
