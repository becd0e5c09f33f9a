//! The metadata of an issuer that only signs tokens: issuer and key set.

use serde_json::json;

use super::*;

const ISSUER: &str = "https://tr.example.com";

fn judge_of(issuer: &str, document: &Value) -> Result<Url, ProviderError> {
    let settings = ProviderSettings::of_signer(issuer, Url::parse(issuer).expect("a URL"));
    let metadata = settings.check_document(document.as_object().expect("a document").clone())?;
    Ok(metadata.jwks_uri)
}

/// The minimal document, patched.
fn judge(patch: &Value) -> Result<Url, ProviderError> {
    let mut document =
        json!({ "issuer": ISSUER, "jwks_uri": "https://tr.example.com/jwks.json", "other": 7 });
    for (name, value) in patch.as_object().expect("a patch") {
        document[name] = value.clone();
    }
    judge_of(ISSUER, &document)
}

/// SSF 1.0 section 7.2.4.
#[test]
fn the_issuer_is_the_configured_one_byte_by_byte() {
    assert!(judge(&json!({})).is_ok());
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
fn without_keys_under_https_there_is_no_issuer() {
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
            Err(ProviderError::MissingEndpoint("jwks_uri") | ProviderError::Malformed { .. })
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
        let is_insecure = matches!(judged, Err(ProviderError::InsecureEndpoint("jwks_uri")));
        assert!(is_insecure, "{insecure}");
    }
    let here = "http://127.0.0.1:9000";
    let document = json!({ "issuer": here, "jwks_uri": "http://127.0.0.1:9000/jwks.json" });
    assert!(judge_of(here, &document).is_ok(), "an issuer on this machine");
}

#[test]
fn what_else_an_issuer_of_signatures_says_does_not_count() {
    for (name, odd) in [
        ("revocation_endpoint", json!("/revoke")),
        ("userinfo_endpoint", json!("http://tr.example.com/userinfo")),
        ("end_session_endpoint", json!(7)),
        ("token_endpoint", json!({})),
        ("id_token_signing_alg_values_supported", json!(["none"])),
    ] {
        let judged = judge(&json!({ name: odd }));
        assert!(judged.is_ok(), "{name}: {judged:?}");
    }
}
