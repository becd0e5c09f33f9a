//! Why a peer's certificate is not trusted, and when a certificate expires.

use std::error::Error;
use std::io;

use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::KeyUsage;

/// Why a TLS connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate comes from an authority that is not trusted.
    UnknownAuthority,
    /// The certificate is for another name.
    OtherName,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet, or our clock is slow.
    NotYetValid,
    /// The certificate is an authority's; servers must not use it (RFC 5280 section 4.2.1.9).
    OfAuthority,
    /// The other side speaks no TLS.
    NotTls,
    /// The peer ended the handshake: it requires a client certificate, or a different one.
    Refused,
    /// Something else.
    Other,
}

impl TlsFault {
    /// The fault among an error and its causes; `None` if TLS did not fail.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(tls) = error.downcast_ref::<rustls::Error>() {
                return Some(Self::of_tls(tls));
            }
            // `source` of an I/O error skips the wrapped error and returns the cause below it.
            let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = match wrapped {
                Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
                None => error.source(),
            };
        }
        None
    }

    fn of_tls(error: &rustls::Error) -> Self {
        let rustls::Error::InvalidCertificate(certificate) = error else {
            return match error {
                rustls::Error::InvalidMessage(_) => Self::NotTls,
                rustls::Error::AlertReceived(_) => Self::Refused,
                _ => Self::Other,
            };
        };
        match certificate {
            // Two authorities may have the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherName
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::Other(other)
                if matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity)) =>
            {
                Self::OfAuthority
            }
            _ => Self::Other,
        }
    }
}

/// When a certificate expires, in seconds since the Unix epoch, if that is by `deadline`.
///
/// The certificate need not be trusted: the library reports expiry before it looks for the issuer.
#[must_use]
pub fn expires_by(certificate: &[u8], deadline_secs: u64) -> Option<u64> {
    let der = CertificateDer::from(certificate);
    let certificate = webpki::EndEntityCert::try_from(&der).ok()?;
    let deadline = UnixTime::since_unix_epoch(std::time::Duration::from_secs(deadline_secs));
    match certificate.verify_for_usage(&[], &[], &[], deadline, KeyUsage::server_auth(), None, None) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(not_after.as_secs()),
        _ => None,
    }
}

/// The names in the first certificate of a PEM text, which identify a caller: URIs, then DNS names.
#[must_use]
pub fn names_in(pem: &[u8]) -> Vec<String> {
    use rustls::pki_types::pem::PemObject as _;
    let Ok(der) = CertificateDer::from_pem_slice(pem) else {
        return Vec::new();
    };
    let peer = super::PeerCertificate::of(&der);
    peer.uris.iter().chain(&*peer.dns_names).cloned().collect()
}
