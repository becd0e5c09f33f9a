//! What a client proved about itself in the TLS handshake.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;

/// Request extension: the names in the certificate the client showed, which the handshake verified. Names are those of
/// the subject alternative names (RFC 5280, section 4.2.1.6); the common name is never looked at (RFC 9525, section 2).
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    /// The URIs, as they stand in the certificate.
    pub uris: Arc<[String]>,
    /// The DNS names, as they stand in the certificate; some may begin with a wildcard.
    pub dns_names: Arc<[String]>,
    /// Cancelled once the certificate is not believed any more: it expired, or its authority is not trusted now. The
    /// connection takes no further request then.
    pub disbelieved: CancellationToken,
}

impl PeerCertificate {
    /// Reads the names of a certificate that was verified. One that cannot be read has no names.
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
