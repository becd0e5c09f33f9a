//! The configuration of a transmitter: whose it is, where it is, and what of it must not be used.

use serde_json::json;

use super::*;

const ISSUER: &str = "https://tr.example.com";

fn judge_of(issuer: &str, document: &Value) -> Result<TransmitterMetadata, ProviderError> {
    TransmitterMetadata::from_document(document.as_object().expect("a document"), issuer)
}

/// The least there has to be, patched.
fn judge(patch: &Value) -> Result<TransmitterMetadata, ProviderError> {
    let mut document = json!({ "issuer": ISSUER, "jwks_uri": "https://tr.example.com/jwks.json" });
    for (name, value) in patch.as_object().expect("a patch") {
        document[name] = value.clone();
    }
    judge_of(ISSUER, &document)
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

/// SSF 1.0 section 7.2.3.
#[test]
fn the_example_of_the_specification_says_what_it_says() {
    let document = json!({
        "spec_version": "1_0",
        "issuer": ISSUER,
        "jwks_uri": "https://tr.example.com/jwks.json",
        "delivery_methods_supported": ["urn:ietf:rfc:8935", "urn:ietf:rfc:8936"],
        "configuration_endpoint": "https://tr.example.com/ssf/mgmt/stream",
        "status_endpoint": "https://tr.example.com/ssf/mgmt/status",
        "add_subject_endpoint": "https://tr.example.com/ssf/mgmt/subject:add",
        "remove_subject_endpoint": "https://tr.example.com/ssf/mgmt/subject:remove",
        "verification_endpoint": "https://tr.example.com/ssf/mgmt/verification",
        "critical_subject_members": ["tenant", "user"],
        "authorization_schemes": [{ "spec_urn": "urn:ietf:rfc:6749" }, { "spec_urn": "urn:ietf:rfc:8705" }],
        "default_subjects": "NONE",
        "other_claims": "may be there too",
    });
    let whole = TransmitterMetadata {
        issuer: ISSUER.to_owned(),
        jwks_uri: url("https://tr.example.com/jwks.json"),
        critical_subject_members: ["tenant", "user"].map(str::to_owned).to_vec(),
    };
    assert_eq!(judge_of(ISSUER, &document).expect("metadata"), whole);
}

/// SSF 1.0 section 7.2.4.
#[test]
fn the_issuer_is_the_configured_one_byte_by_byte() {
    for said in [
        json!(null),
        json!(""),
        json!(7),
        json!("https://tr.example.com/"),
        json!("https://TR.example.com"),
        json!("https://tr.example.com:443"),
        json!("http://tr.example.com"),
        json!("https://evil.example"),
    ] {
        let judged = judge(&json!({ "issuer": said }));
        assert!(matches!(judged, Err(ProviderError::IssuerMismatch)), "{said}");
    }
}

#[test]
fn without_keys_under_https_there_is_no_transmitter() {
    for absent in [
        json!(null),
        json!(7),
        json!(""),
        json!("/jwks.json"),
        json!(["x"]),
    ] {
        let judged = judge(&json!({ "jwks_uri": absent }));
        let is_missing = matches!(
            judged,
            Err(ProviderError::MissingEndpoint { endpoint: "jwks_uri" })
        );
        assert!(is_missing, "{absent}");
    }
    for insecure in [
        "http://tr.example.com/jwks.json",
        "http://127.0.0.1:9000/jwks.json",
        "http://169.254.169.254/jwks.json",
        "ftp://tr.example.com/jwks.json",
        "file:///etc/passwd",
        "data:application/json,{}",
    ] {
        let judged = judge(&json!({ "jwks_uri": insecure }));
        let is_insecure = matches!(
            judged,
            Err(ProviderError::InsecureEndpoint { endpoint: "jwks_uri" })
        );
        assert!(is_insecure, "{insecure}");
    }
    let here = "http://127.0.0.1:9000";
    let document = json!({ "issuer": here, "jwks_uri": "http://127.0.0.1:9000/jwks.json" });
    assert!(judge_of(here, &document).is_ok(), "a transmitter on this machine");
}

#[test]
fn critical_members_are_read_all_or_not_at_all() {
    for (said, read) in [
        (json!(null), Some(vec![])),
        (json!([]), Some(vec![])),
        (json!(["tenant"]), Some(vec!["tenant"])),
        (json!(vec!["m"; 64]), Some(vec!["m"; 64])),
        (json!(vec!["m"; 65]), None),
        (json!("tenant"), None),
        (json!({ "tenant": true }), None),
        (json!(["tenant", 7]), None),
        (json!(["m".repeat(513)]), None),
    ] {
        let judged = judge(&json!({ "critical_subject_members": said }));
        match read {
            Some(read) => assert_eq!(judged.expect("metadata").critical_subject_members, read, "{said}"),
            None => assert!(
                matches!(
                    judged,
                    Err(ProviderError::Malformed {
                        endpoint: TRANSMITTER_CONFIGURATION
                    })
                ),
                "{said}"
            ),
        }
    }
}

/// SSF 1.0 section 7.2.1.
#[test]
fn the_document_is_between_the_issuers_host_and_its_path() {
    for (issuer, address) in [
        (
            "https://tr.example.com",
            "https://tr.example.com/.well-known/ssf-configuration",
        ),
        (
            "https://tr.example.com/",
            "https://tr.example.com/.well-known/ssf-configuration",
        ),
        (
            "https://tr.example.com/issuer1",
            "https://tr.example.com/.well-known/ssf-configuration/issuer1",
        ),
        (
            "https://tr.example.com/issuer1/",
            "https://tr.example.com/.well-known/ssf-configuration/issuer1",
        ),
        (
            "https://tr.example.com:8443/a/b%20c",
            "https://tr.example.com:8443/.well-known/ssf-configuration/a/b%20c",
        ),
    ] {
        let built = TransmitterMetadata::address(issuer).map(String::from);
        assert_eq!(built.as_deref(), Some(address), "{issuer}");
    }
    assert_eq!(TransmitterMetadata::address("tr.example.com"), None);
}
