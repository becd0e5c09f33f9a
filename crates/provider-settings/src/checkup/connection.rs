//! The way to the provider: is there a document, is the certificate good for a while, do the clocks agree?

use std::error::Error;

use chassis::findings::{Finding, Remedy, chain};
use chassis::tls::{TlsFault, expires_by};
use oidc::{DiscoveryProbe, ProviderError, ProviderSettings};
use url::Url;

/// A certificate that ends sooner is worth a look: what renews it should have done so.
const CERTIFICATE_NOTICE_SECS: u64 = 14 * DAY_SECS;
/// One day.
const DAY_SECS: u64 = 86_400;
/// Clocks kept by NTP are much closer: something is wrong, though tokens still count.
const CLOCK_NOTICE_SECS: u64 = 10;
/// What ends the address of a discovery document (OpenID Connect Discovery 4).
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Everything that is known of the way there, whether or not it leads to a document. `now` is in seconds since the epoch.
pub(super) fn judge(settings: &ProviderSettings, probe: &DiscoveryProbe, now: u64) -> Vec<Finding> {
    let mut findings = vec![forward_proxy(settings, &probe.url)];
    findings.push(match &probe.document {
        Ok(_) => Finding::fits("discovery", probe.url.as_str()),
        Err(error) => no_document(settings, probe, error),
    });
    findings.extend(certificate(settings, probe, now));
    findings.extend(clock(settings, probe.clock_offset_secs));
    findings
}

fn forward_proxy(settings: &ProviderSettings, url: &Url) -> Finding {
    let id = "forward_proxy";
    match &settings.proxy {
        None => Finding::information(id, "none (HTTPS_PROXY is not set)"),
        Some(proxy) => match proxy.authority_for(url) {
            Some(authority) => Finding::information(id, format!("through {authority} (HTTPS_PROXY)")),
            None => Finding::information(
                id,
                "HTTPS_PROXY is set and not used for this host: it is on this machine or in NO_PROXY",
            ),
        },
    }
}

fn no_document(settings: &ProviderSettings, probe: &DiscoveryProbe, error: &ProviderError) -> Finding {
    let issuer = |advice: String| Remedy::set("OIDC_ISSUER_URL", advice);
    let (found, remedy) = match error {
        ProviderError::Unreachable { source, .. } => match TlsFault::of(source) {
            Some(fault) => untrusted(settings, probe, fault),
            None => unreachable(settings, probe, error),
        },
        ProviderError::Timeout { .. } => (
            format!("no answer within {} ms", settings.http_timeout.as_millis()),
            issuer("check that this host may reach the provider (firewall, network policy, HTTPS_PROXY); for a provider that is slow and not silent, raise OIDC_HTTP_TIMEOUT_MS".to_owned()),
        ),
        ProviderError::Status { status, .. } => (format!("status {status}"), wrong_status(settings, probe, *status)),
        ProviderError::Malformed { .. } => (
            "an answer that is no discovery document".to_owned(),
            issuer("copy the issuer from the provider's console: what answers at this address is something else, such as a sign-in page".to_owned()),
        ),
        other => (chain(other), issuer("copy the issuer from the provider's console".to_owned())),
    };
    Finding::problem("discovery", format!("{}: {found}", probe.url), remedy)
}

fn wrong_status(settings: &ProviderSettings, probe: &DiscoveryProbe, status: u16) -> Remedy {
    let issuer = &settings.issuer;
    if let Some(short) = issuer.trim_end_matches('/').strip_suffix(WELL_KNOWN) {
        return Remedy::set("OIDC_ISSUER_URL", format!("write {short} (without {WELL_KNOWN})"));
    }
    let leads_to = probe.location.as_deref().filter(|_| (300..400).contains(&status));
    match leads_to {
        Some(to) => {
            let base = to.split_once(WELL_KNOWN).map_or(to, |(base, _)| base);
            Remedy::set(
                "OIDC_ISSUER_URL",
                format!("write the address it leads to, redirects are not followed: {base}"),
            )
        }
        None => Remedy::set(
            "OIDC_ISSUER_URL",
            "copy the issuer from the provider's console, path included (such as /realms/NAME or /v2.0)",
        ),
    }
}

fn unreachable(
    settings: &ProviderSettings,
    probe: &DiscoveryProbe,
    error: &ProviderError,
) -> (String, Remedy) {
    let proxy = settings
        .proxy
        .as_ref()
        .and_then(|proxy| proxy.authority_for(&probe.url));
    let advice = match proxy {
        Some(proxy) => Remedy::set(
            "HTTPS_PROXY",
            format!(
                "check that {proxy} runs and lets this host through; NO_PROXY names who is reached without it"
            ),
        ),
        None => Remedy::set(
            "OIDC_ISSUER_URL",
            "check host and port, and that this host may reach it (DNS, firewall, network policy); where a proxy leads outside, set HTTPS_PROXY",
        ),
    };
    (root(error), advice)
}

/// The cause of all causes, which names what happened; what is above it names our own layers.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

fn untrusted(settings: &ProviderSettings, probe: &DiscoveryProbe, fault: TlsFault) -> (String, Remedy) {
    let host = probe.url.host_str().unwrap_or_default();
    let (found, remedy) = match (fault, &settings.ca_file) {
        (TlsFault::UnknownAuthority, None) => (
            "its certificate is from an authority that is not among the public ones",
            Remedy::set(
                "OIDC_CA_FILE",
                "name the PEM file of the authority that signed it",
            ),
        ),
        (TlsFault::UnknownAuthority, Some(_)) => (
            "its certificate is from none of the authorities in OIDC_CA_FILE",
            Remedy::set(
                "OIDC_CA_FILE",
                "add the authority that signed it, or unset it if the provider has a public certificate",
            ),
        ),
        (TlsFault::OtherName, _) => (
            "its certificate is for another name",
            Remedy::set(
                "OIDC_ISSUER_URL",
                format!("use the name the certificate is for, or have one made for {host}"),
            ),
        ),
        (TlsFault::Expired, _) => (
            "its certificate has expired",
            Remedy::elsewhere("renew the provider's certificate; if it is new, check this machine's clock"),
        ),
        (TlsFault::NotYetValid, _) => (
            "its certificate is not valid yet",
            Remedy::elsewhere("check this machine's clock: it seems to be slow"),
        ),
        (TlsFault::NotTls, _) => (
            "it does not speak TLS at this port",
            Remedy::set(
                "OIDC_ISSUER_URL",
                "check the port: https is 443 unless it says otherwise",
            ),
        ),
        (TlsFault::Refused, _) => (
            "it ended the TLS handshake",
            Remedy::set(
                "OIDC_CLIENT_CERT_FILE",
                "if it wants a client certificate, set this and OIDC_CLIENT_KEY_FILE with OIDC_CLIENT_AUTH_METHOD=tls_client_auth",
            ),
        ),
        (TlsFault::OfAuthority, _) => (
            "its certificate is that of an authority (CA:TRUE), as `openssl req -x509` makes them unless told otherwise",
            Remedy::elsewhere("have a certificate made for the provider with basicConstraints=CA:FALSE"),
        ),
        (TlsFault::Other, _) => (
            "no TLS connection comes about",
            Remedy::set(
                "OIDC_CA_FILE",
                "check what stands between this host and the provider, such as a proxy that looks into TLS: it needs its own authority here",
            ),
        ),
    };
    (found.to_owned(), remedy)
}

fn certificate(settings: &ProviderSettings, probe: &DiscoveryProbe, now: u64) -> Option<Finding> {
    let id = "certificate";
    if probe.document.is_err() && probe.certificate.is_none() {
        return None;
    }
    if probe.url.scheme() == "http" {
        return Some(Finding::information(id, "none: plain http on this machine"));
    }
    let trusted_by = match &settings.ca_file {
        Some(_) => "an authority of OIDC_CA_FILE",
        None => "a public authority",
    };
    let deadline = now.saturating_add(CERTIFICATE_NOTICE_SECS);
    let ends = probe
        .certificate
        .as_deref()
        .and_then(|der| expires_by(der, deadline));
    Some(match ends {
        None => Finding::fits(
            id,
            format!(
                "from {trusted_by}, good for more than {} days",
                CERTIFICATE_NOTICE_SECS / DAY_SECS
            ),
        ),
        Some(ends) => Finding::warning(
            id,
            format!(
                "from {trusted_by}, expires in {} days",
                ends.saturating_sub(now) / DAY_SECS
            ),
            Remedy::elsewhere("have the provider's certificate renewed: afterwards nobody can sign in"),
        ),
    })
}

fn clock(settings: &ProviderSettings, offset_secs: Option<i64>) -> Option<Finding> {
    let id = "clock";
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
            id,
            format!("{found}, and {tolerance} s are tolerated: tokens are refused"),
            Remedy::set(
                "OIDC_CLOCK_TOLERANCE",
                "set both clocks by NTP (timedatectl); raising this, to 300 at most, only helps until they are further apart",
            ),
        )
    } else if apart > CLOCK_NOTICE_SECS {
        Finding::warning(
            id,
            format!("{found}; {tolerance} s are tolerated"),
            Remedy::elsewhere("set both clocks by NTP (timedatectl)"),
        )
    } else {
        Finding::fits(id, found)
    })
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
