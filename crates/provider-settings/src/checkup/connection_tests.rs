//! Check results for the connection to the provider, as tables.

use chassis::findings::CheckResult;
use oidc::{ForwardProxy, ProviderSettings};

use super::*;

fn probe(issuer: &str) -> DiscoveryProbe {
    DiscoveryProbe {
        url: Url::parse(&format!("{}{WELL_KNOWN}", issuer.trim_end_matches('/'))).unwrap(),
        document: Ok(serde_json::Map::new()),
        location: None,
        clock_offset_secs: Some(0),
        certificate: None,
    }
}

fn find_check(issuer: &str, probe: &DiscoveryProbe, id: &str) -> Option<Finding> {
    let settings = ProviderSettings::new(issuer, "client");
    judge(&settings, probe, 0)
        .into_iter()
        .find(|(check, _)| *check == id)
        .map(|(_, finding)| finding)
}

#[test]
fn clocks_are_judged_by_the_tolerance() {
    for (offset, verdict) in [
        (0, CheckResult::Fits),
        (-10, CheckResult::Fits),
        (11, CheckResult::Warning),
        (60, CheckResult::Warning),
        (61, CheckResult::Problem),
        (-3600, CheckResult::Problem),
    ] {
        let probe = DiscoveryProbe {
            clock_offset_secs: Some(offset),
            ..probe("https://op.example")
        };
        assert_eq!(
            find_check("https://op.example", &probe, "clock").unwrap().verdict,
            verdict,
            "{offset}"
        );
    }
    let silent = DiscoveryProbe {
        clock_offset_secs: None,
        ..probe("https://op.example")
    };
    assert_eq!(find_check("https://op.example", &silent, "clock"), None);
}

#[test]
fn what_answers_instead_of_a_document_is_told_with_its_remedy() {
    let status = |status| ProviderError::Status("discovery document", status);
    let timeout = ProviderError::Timeout("discovery document");
    let page = ProviderError::Malformed("discovery document");
    const LONG: &str = "https://op.example/.well-known/openid-configuration";
    for (issuer, error, location, advice) in [
        (LONG, status(404), None, "write https://op.example (without"),
        ("https://op.example", status(404), None, "/realms/NAME"),
        (
            "https://op.example",
            status(301),
            Some("https://id.example/.well-known/openid-configuration"),
            "leads to, redirects are not followed: https://id.example",
        ),
        ("https://op.example", timeout, None, "OIDC_HTTP_TIMEOUT_MS"),
        ("https://op.example", page, None, "copy the issuer"),
    ] {
        let probe = DiscoveryProbe {
            document: Err(error),
            location: location.map(str::to_owned),
            ..probe(issuer)
        };
        let finding = find_check(issuer, &probe, "discovery").unwrap();
        assert_eq!(finding.verdict, CheckResult::Problem);
        let given = finding.advice.unwrap();
        assert!(given.starts_with("OIDC_ISSUER_URL: "), "{given}");
        assert!(given.contains(advice), "{given}");
    }
}

#[test]
fn each_fault_of_tls_names_what_mends_it() {
    for (fault, setting) in [
        (TlsFault::UnknownAuthority, "OIDC_CA_FILE: "),
        (TlsFault::OtherName, "OIDC_ISSUER_URL: "),
        (TlsFault::Expired, "renew "),
        (TlsFault::NotYetValid, "set the clocks "),
        (TlsFault::NotTls, "OIDC_ISSUER_URL: "),
        (TlsFault::Refused, "OIDC_CLIENT_CERT_FILE: "),
    ] {
        let (_, advice) = describe_fault(fault, PROVIDER);
        assert!(advice.starts_with(setting), "{fault:?}: {advice}");
    }
}

#[test]
fn the_forward_proxy_is_named_without_its_password() {
    let proxied = |issuer: &str| {
        let proxy = ForwardProxy::new("http://user:hunter22@proxy.example:3128", "").unwrap();
        let settings = ProviderSettings {
            credentials: oidc::Credentials {
                proxy: Some(proxy),
                ..oidc::Credentials::default()
            },
            ..ProviderSettings::new(issuer, "client")
        };
        let finding = judge(&settings, &probe(issuer), 0)
            .into_iter()
            .find(|(id, _)| *id == "forward_proxy");
        finding.unwrap().1.found
    };
    assert_eq!(
        proxied("https://op.example"),
        "through proxy.example:3128 (HTTPS_PROXY)"
    );
    assert!(proxied("http://127.0.0.1:9000").contains("not used"));
}
