//! What a client proved about itself in the TLS handshake.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;

/// Request extension: the names in the certificate the client showed, which the handshake verified. Names are those of
/// the subject alternative names (RFC 5280, section 4.2.1.6); the common name is never looked at (RFC 9525, section 2).
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    names: Arc<SubjectAltNames>,
    /// Cancelled once the certificate is not believed any more: it expired, or its authority is not trusted now. The
    /// connection takes no further request then.
    pub disbelieved: CancellationToken,
}

#[derive(Debug, Default)]
struct SubjectAltNames {
    uris: Vec<String>,
    dns_names: Vec<String>,
}

impl PeerCertificate {
    /// Reads the names of a certificate that was verified. One that cannot be read has no names.
    pub(crate) fn of(verified: &CertificateDer<'_>) -> Self {
        let names = webpki::EndEntityCert::try_from(verified).map(|certificate| SubjectAltNames {
            uris: certificate.valid_uri_names().map(str::to_owned).collect(),
            dns_names: certificate.valid_dns_names().map(str::to_owned).collect(),
        });
        Self {
            names: Arc::new(names.unwrap_or_default()),
            disbelieved: CancellationToken::new(),
        }
    }

    /// The URIs, as they stand in the certificate.
    #[must_use]
    pub fn uris(&self) -> &[String] {
        &self.names.uris
    }

    /// The DNS names, as they stand in the certificate; some may begin with a wildcard.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        &self.names.dns_names
    }
}
