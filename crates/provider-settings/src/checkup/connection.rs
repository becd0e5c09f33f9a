//! The connection to the provider: its document, its certificate and its clock.

use std::error::Error;

use chassis::findings::{Check, Finding, chain};
use chassis::tls::{TlsFault, expires_by};
use oidc::{DiscoveryProbe, ProviderError, ProviderSettings};
use url::Url;

/// A certificate that expires sooner gives a warning, because automatic renewal seems to have failed.
const CERTIFICATE_NOTICE_SECS: u64 = 14 * DAY_SECS;
/// One day.
const DAY_SECS: u64 = 86_400;
/// NTP keeps clocks much closer. A larger difference gives a warning, although tokens are still valid.
const CLOCK_NOTICE_SECS: u64 = 10;
/// The end of a discovery document's address (OpenID Connect Discovery 4).
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// The names of a connection's settings, for advice.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSettings {
    /// The server's address.
    pub url: &'static str,
    /// The authorities to trust.
    pub ca: &'static str,
    /// The client certificate.
    pub certificate: &'static str,
}

const PROVIDER: ConnectionSettings = ConnectionSettings {
    url: "OIDC_ISSUER_URL",
    ca: "OIDC_CA_FILE",
    certificate: "OIDC_CLIENT_CERT_FILE",
};

/// All findings about the connection, with or without a document. `now` is in seconds since the Unix epoch.
pub(super) fn judge(settings: &ProviderSettings, probe: &DiscoveryProbe, now: u64) -> Vec<Check> {
    let discovery = match &probe.document {
        Ok(_) => Finding::fits(probe.url.as_str()),
        Err(error) => no_document(settings, probe, error),
    };
    let mut checks = vec![
        ("forward_proxy", forward_proxy(settings, &probe.url)),
        ("discovery", discovery),
    ];
    checks.extend(certificate(settings, probe, now).map(|finding| ("certificate", finding)));
    checks.extend(clock(settings, probe.clock_offset_secs).map(|finding| ("clock", finding)));
    checks
}

fn forward_proxy(settings: &ProviderSettings, url: &Url) -> Finding {
    Finding::information(match &settings.credentials.proxy {
        None => "none (HTTPS_PROXY is not set)".to_owned(),
        Some(proxy) => proxy.authority_for(url).map_or_else(
            || {
                "HTTPS_PROXY is set and not used for this host: it is on this machine or in NO_PROXY"
                    .to_owned()
            },
            |authority| format!("through {authority} (HTTPS_PROXY)"),
        ),
    })
}

fn no_document(settings: &ProviderSettings, probe: &DiscoveryProbe, error: &ProviderError) -> Finding {
    let proxy = settings.credentials.proxy.as_ref();
    let (found, advice) = match error {
        ProviderError::Unreachable(_, source) => match TlsFault::of(source) {
            Some(fault) => describe_fault(fault, PROVIDER),
            None => (
                root(error),
                match proxy.and_then(|proxy| proxy.authority_for(&probe.url)) {
                    Some(proxy) => format!("HTTPS_PROXY: check that {proxy} runs and lets this host through; NO_PROXY lists hosts to reach without it"),
                    None => "OIDC_ISSUER_URL: check host and port, and that this host can reach it (DNS, firewall, network policy); if a proxy is needed, set HTTPS_PROXY".to_owned(),
                },
            ),
        },
        ProviderError::Timeout { .. } => (
            format!("no answer within {} ms", settings.http_timeout.as_millis()),
            "OIDC_ISSUER_URL: check that this host can reach the provider (firewall, network policy, HTTPS_PROXY); if the provider is only slow, raise OIDC_HTTP_TIMEOUT_MS".to_owned(),
        ),
        ProviderError::Status(_, status) => (
            format!("status {status}"),
            format!("OIDC_ISSUER_URL: {}", mend_status(settings, probe, *status)),
        ),
        other => (
            chain(other),
            "OIDC_ISSUER_URL: copy the issuer from the provider's console: this address answers something else, such as a sign-in page".to_owned(),
        ),
    };
    Finding::problem(format!("{}: {found}", probe.url), advice)
}

fn mend_status(settings: &ProviderSettings, probe: &DiscoveryProbe, status: u16) -> String {
    if let Some(short) = settings.issuer.trim_end_matches('/').strip_suffix(WELL_KNOWN) {
        return format!("write {short} (without {WELL_KNOWN})");
    }
    match probe.location.as_deref().filter(|_| (300..400).contains(&status)) {
        Some(to) => {
            let base = to.split_once(WELL_KNOWN).map_or(to, |(base, _)| base);
            format!("write the address it leads to, redirects are not followed: {base}")
        }
        None => "copy the issuer from the provider's console, path included (such as /realms/NAME or /v2.0)"
            .to_owned(),
    }
}

/// The innermost cause, which says what happened. The outer errors name our own layers.
#[must_use]
pub fn root(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

/// Why a TLS connection fails, and how to fix it.
#[must_use]
pub fn describe_fault(fault: TlsFault, settings: ConnectionSettings) -> (String, String) {
    let ConnectionSettings { url, ca, certificate } = settings;
    let (found, advice) = match fault {
        TlsFault::UnknownAuthority => (
            format!("its certificate is not from an authority of {ca}, or a public one if {ca} is unset"),
            format!("{ca}: name the PEM file of its authority, or unset it for a public certificate"),
        ),
        TlsFault::OtherName => (
            "its certificate is for another name".to_owned(),
            format!("{url}: write a name of the certificate, or add this name to the certificate"),
        ),
        TlsFault::Expired => (
            "its certificate has expired".to_owned(),
            "renew the server's certificate; if it is new, check this machine's clock".to_owned(),
        ),
        TlsFault::NotYetValid => (
            "its certificate is not valid yet".to_owned(),
            "set the clocks of both machines by NTP".to_owned(),
        ),
        TlsFault::NotTls => (
            "it does not use TLS on this port".to_owned(),
            format!("{url}: check the port, or write http:// if the server has no TLS"),
        ),
        TlsFault::Refused => (
            "it ended the TLS handshake".to_owned(),
            format!("{certificate}: name a certificate that the server accepts, and its key"),
        ),
        TlsFault::OfAuthority => (
            "its certificate is an authority's (CA:TRUE), the default of `openssl req -x509`".to_owned(),
            "create a certificate for the server with basicConstraints=CA:FALSE".to_owned(),
        ),
        TlsFault::Other => (
            "the TLS connection fails".to_owned(),
            format!("{ca}: check the network path; if a proxy decrypts TLS, name its authority here"),
        ),
    };
    (found, advice)
}

fn certificate(settings: &ProviderSettings, probe: &DiscoveryProbe, now: u64) -> Option<Finding> {
    if probe.document.is_err() && probe.certificate.is_none() {
        return None;
    }
    if probe.url.scheme() == "http" {
        return Some(Finding::information("none: plain http on this machine"));
    }
    let trusted_by = match &settings.ca_file {
        Some(_) => "an authority of OIDC_CA_FILE",
        None => "a public authority",
    };
    let deadline = now.saturating_add(CERTIFICATE_NOTICE_SECS);
    let certificate = probe.certificate.as_deref();
    Some(match certificate.and_then(|der| expires_by(der, deadline)) {
        None => Finding::fits(format!(
            "from {trusted_by}, valid for more than {} days",
            CERTIFICATE_NOTICE_SECS / DAY_SECS
        )),
        Some(ends) => Finding::warning(
            format!(
                "from {trusted_by}, expires in {} days",
                ends.saturating_sub(now) / DAY_SECS
            ),
            "renew the provider's certificate: after it expires, no user can sign in",
        ),
    })
}

fn clock(settings: &ProviderSettings, offset_secs: Option<i64>) -> Option<Finding> {
    let offset = offset_secs?;
    let apart = offset.unsigned_abs();
    let found = match offset {
        0 => "the provider's and ours agree".to_owned(),
        1.. => format!("the provider's is {apart} s ahead of ours"),
        _ => format!("the provider's is {apart} s behind ours"),
    };
    let tolerance = settings.clock_tolerance_secs;
    Some(if apart > tolerance {
        Finding::problem(
            format!("{found}, more than the tolerance of {tolerance} s: tokens are rejected"),
            "OIDC_CLOCK_TOLERANCE: set both clocks by NTP (timedatectl); raising this, to 300 at most, only helps until they are further apart",
        )
    } else if apart > CLOCK_NOTICE_SECS {
        Finding::warning(
            format!("{found}; the tolerance is {tolerance} s"),
            "set both clocks by NTP (timedatectl)",
        )
    } else {
        Finding::fits(found)
    })
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
