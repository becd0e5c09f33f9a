//! The collector of traces, and the TLS trust for it.

use std::io;
use std::path::PathBuf;

use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig, Identity};

use crate::files::read_bounded;
use crate::settings::Reader;
use crate::tls;

pub(crate) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const PROPAGATORS: &str = "OTEL_PROPAGATORS";
const AUTHORITIES: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// A collector of traces.
pub(crate) struct CollectorSettings {
    pub(super) endpoint: String,
    pub(super) tls: Option<CollectorTls>,
}

/// Trusted authorities (the system's if no file is set), and our client certificate.
pub(super) struct CollectorTls {
    authorities: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl CollectorSettings {
    /// Reads and checks the collector's settings. Platforms set these variables for every program. So the other
    /// variables are checked only if traces are sent, and files only for an `https` collector.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.flag("OTEL_SDK_DISABLED") {
            return None;
        }
        match reader.text(EXPORTER).as_str() {
            "otlp" => {}
            "none" => return None,
            _ => reader.wrong(EXPORTER, "takes otlp or none: this program has no other exporter"),
        }
        let endpoint = reader.optional_text(ENDPOINT)?;
        let url = reader.url(ENDPOINT)?;
        if reader.text(PROTOCOL) != "grpc" {
            reader.wrong(
                PROTOCOL,
                "takes grpc: traces are sent over gRPC alone; give the collector's gRPC address, usually port 4317",
            );
        }
        check_propagators(reader);
        let tls = match url.scheme() {
            "http" => None,
            "https" => Some(CollectorTls::read(reader)),
            _ => {
                reader.wrong(ENDPOINT, "must begin with http:// or https://");
                None
            }
        };
        Some(Self { endpoint, tls })
    }
}

/// Rejects unsupported propagation formats. Baggage is in the standard's default, but is never sent.
fn check_propagators(reader: &mut Reader<'_>) {
    let names = reader.list(PROPAGATORS);
    let is_known = |name: &String| name == "tracecontext" || name == "baggage";
    if !names.iter().any(|name| name == "tracecontext") || !names.iter().all(is_known) {
        reader.wrong(
            PROPAGATORS,
            "takes tracecontext, also with baggage, which is not sent: this program knows no other format",
        );
    }
}

impl CollectorTls {
    fn read(reader: &mut Reader<'_>) -> Self {
        let authorities = tls::read_authorities(reader, AUTHORITIES);
        if authorities.is_none() && rustls_native_certs::load_native_certs().certs.is_empty() {
            reader.wrong(
                ENDPOINT,
                format!(
                    "is https and this system has no authorities to trust: set the collector's own with {AUTHORITIES}, or a file of authorities with SSL_CERT_FILE"
                ),
            );
        }
        let identity = tls::read_pair(
            reader,
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CLIENT_KEY",
        );
        Self {
            authorities,
            identity,
        }
    }

    pub(super) fn config(&self) -> io::Result<ClientTlsConfig> {
        let config = match &self.authorities {
            Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read_bounded(path)?)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        Ok(match &self.identity {
            Some((certificate, key)) => {
                config.identity(Identity::from_pem(read_bounded(certificate)?, read_bounded(key)?))
            }
            None => config,
        })
    }
}
