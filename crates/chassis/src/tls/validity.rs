//! Metrics of the validity of the certificates that this process uses.

use std::path::Path;
use std::time::Duration;

use prometheus::{IntGaugeVec, Opts, Registry};
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::KeyUsage;

use super::{expires_by, pem};

/// The metrics of all certificates. Clones share them.
#[derive(Clone, Debug)]
pub struct CertificateMetrics {
    not_before: IntGaugeVec,
    not_after: IntGaugeVec,
}

impl CertificateMetrics {
    /// Registers the metrics. They have no values until a certificate is loaded.
    ///
    /// # Errors
    /// They are registered already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name, help| {
            let gauge = IntGaugeVec::new(Opts::new(name, help), &["use", "provider"])?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        Ok(Self {
            not_before: gauge(
                "tls_certificate_not_before_timestamp_seconds",
                "Start of the validity of a certificate in use, since the Unix epoch.",
            )?,
            not_after: gauge(
                "tls_certificate_not_after_timestamp_seconds",
                "End of the validity of a certificate in use, since the Unix epoch.",
            )?,
        })
    }

    /// The certificate for one use: `server`, `session_service`, `store`, or `provider` with its id.
    #[must_use]
    pub fn of(&self, used: &'static str, provider: &str) -> CertificateGauges {
        CertificateGauges {
            metrics: self.clone(),
            used,
            provider: provider.to_owned(),
        }
    }
}

/// A certificate of ours, which is reloaded from its file.
#[derive(Clone, Debug)]
pub struct CertificateGauges {
    metrics: CertificateMetrics,
    used: &'static str,
    provider: String,
}

impl CertificateGauges {
    /// Reports the certificate just loaded from this file; `None` clears the metrics. The file's authorities
    /// are not reported: only a verifier knows which of them its chain needs.
    pub fn loaded(&self, path: Option<&Path>) {
        let chain = path.and_then(|path| pem::certificates(path).ok());
        let found = chain.and_then(|chain| chain.first().and_then(|own| validity(own)));
        let labels = [self.used, self.provider.as_str()];
        let gauges = [&self.metrics.not_before, &self.metrics.not_after];
        match found {
            Some(times) => {
                for (gauge, secs) in gauges.into_iter().zip(times) {
                    let secs = i64::try_from(secs).unwrap_or(i64::MAX);
                    gauge.with_label_values(&labels).set(secs);
                }
            }
            // It fails if there was no certificate before.
            None => gauges.into_iter().for_each(|gauge| {
                let _ = gauge.remove_label_values(&labels);
            }),
        }
    }
}

/// The start and end of a certificate's validity, in seconds since the Unix epoch.
fn validity(certificate: &[u8]) -> Option<[u64; 2]> {
    let der = CertificateDer::from(certificate);
    let parsed = webpki::EndEntityCert::try_from(&der).ok()?;
    // The library only reports the limit that a date violates. So an early date gives the start, a late one the end.
    let long_ago = UnixTime::since_unix_epoch(Duration::ZERO);
    let not_before =
        match parsed.verify_for_usage(&[], &[], &[], long_ago, KeyUsage::server_auth(), None, None) {
            Err(webpki::Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
            _ => 0,
        };
    Some([not_before, expires_by(certificate, u64::MAX)?])
}
