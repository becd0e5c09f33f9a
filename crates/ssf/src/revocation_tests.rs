//! A request's JWT and body, with one fault at a time.

use serde_json::json;

use super::*;

const ISSUER: &str = "https://org.example";
const OURS: &str = "https://app.example/api/auth/global-token-revocation";
const NOW: u64 = 1_800_000_000;

/// Validates the claims that Okta documents, patched; `null` removes a member.
fn validate(patch: &Value) -> Result<RevocationToken, String> {
    let mut claims = json!({
        "iss": ISSUER, "aud": OURS, "sub": "client", "jti": "one",
        "iat": NOW, "nbf": NOW - 300, "exp": NOW + 300,
    });
    for (name, value) in patch.as_object().expect("a patch") {
        claims[name] = value.clone();
    }
    let mut claims = claims.as_object().cloned().expect("claims");
    claims.retain(|_, value| !value.is_null());
    RevocationToken::validate(&claims, ISSUER, &[OURS.to_owned()], NOW).map_err(|error| error.to_string())
}

#[test]
fn a_token_as_okta_documents_it_is_valid_until_it_expires() {
    let token = validate(&json!({})).expect("valid");
    assert_eq!((token.jti.as_str(), token.valid_until), ("one", NOW + 360));
    for right in [
        json!({ "aud": ["https://other.example", OURS] }),
        json!({ "nbf": null, "sub": null }),
        json!({ "iat": NOW + 60, "exp": NOW + 3_660 }),
        json!({ "exp": NOW - 59 }),
    ] {
        assert!(validate(&right).is_ok(), "{right}");
    }
}

#[test]
fn each_wrong_claim_is_named() {
    for (patch, fault) in [
        (json!({ "iss": "https://org.example/" }), "iss is not"),
        (json!({ "iss": null }), "iss is not"),
        (json!({ "aud": "https://app.example" }), "aud does not name"),
        (json!({ "aud": null }), "aud does not name"),
        (json!({ "nbf": NOW + 61 }), "nbf has not"),
        (json!({ "nbf": "soon" }), "nbf has not"),
        (json!({ "iat": NOW + 61 }), "iat is absent"),
        (json!({ "iat": null }), "iat is absent"),
        (json!({ "exp": NOW - 60 }), "exp is absent"),
        (json!({ "exp": null }), "exp is absent"),
        (json!({ "exp": NOW + 3_721 }), "exp is more than an hour"),
        (json!({ "jti": null }), "jti is absent"),
        (json!({ "jti": "" }), "jti is absent"),
        (json!({ "jti": "x".repeat(513) }), "jti is absent"),
    ] {
        let error = validate(&patch).expect_err("a refusal");
        assert!(error.starts_with(fault), "{patch}: {error}");
    }
}

#[test]
fn a_body_names_one_user_in_a_format_of_rfc_9493() {
    let named = revocation_subject(r#"{"sub_id": {"format": "email", "email": "a@b.example"}, "more": 1}"#);
    assert_eq!(
        named.expect("a user"),
        [SubjectIdentifier::Email("a@b.example".into())]
    );
    for (body, fault) in [
        ("", "the body"),
        ("[]", "the body"),
        (r#"{"sub_id": 1, "sub_id": 2}"#, "the body"),
        ("{}", "sub_id is absent"),
        (
            r#"{"subject": {"format": "opaque", "id": "1"}}"#,
            "sub_id is absent",
        ),
        (r#"{"sub_id": {"format": "opaque"}}"#, "sub_id lacks"),
        (
            r#"{"sub_id": {"format": "complex", "user": {"format": "opaque", "id": "1"}}}"#,
            "sub_id has the format complex",
        ),
    ] {
        let error = revocation_subject(body).expect_err("a refusal").to_string();
        assert!(error.starts_with(fault), "{body}: {error}");
    }
}
