//! Each vendor signs a person in, refreshes after expiry and signs out, scripted from its public documents.

use reqwest::Method;
use scripted_provider::{CLIENT_ID, Endpoint, Script, ScriptedProvider};
use serde_json::{Value, json};
use url::Url;

use super::stand_in::{StandIn, form_fields};
use crate::support::{Answer, Browser};

/// A tenant of Microsoft Entra ID.
pub(super) const TENANT: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";

/// The content of a vendor's documents.
struct Vendor {
    name: &'static str,
    /// The path of the issuer in `OIDC_ISSUER_URL`; `{at}` in the lines is the base before it.
    path: &'static str,
    lines: &'static str,
    settings: &'static [(&'static str, &'static str)],
    script: fn(&mut Script, &str),
    /// Members of the profile.
    profile: fn() -> Value,
    /// Parameters of the sign-out; none if the sign-out stays at the edge.
    sign_out: &'static [&'static str],
}

/// The edge's defaults for an answer by form.
const BY_FORM: &[(&str, &str)] = &[("EDGE_BASE_URL", "https://app.example")];

const VENDORS: &[Vendor] = &[
    Vendor {
        name: "Cognito",
        path: "/eu-west-1_EXAMPLE",
        lines: "",
        settings: &[("EDGE_IDP_LOGOUT", "cognito")],
        script: |script, _at| {
            without_iss_parameter(script);
            says(script, "code_challenge_methods_supported", Value::Null);
            says(
                script,
                "token_endpoint_auth_methods_supported",
                json!(["client_secret_basic", "client_secret_post"]),
            );
            claims(
                script,
                &json!({
                    "sid": null, "token_use": "id", "cognito:username": "alice", "cognito:groups": ["staff"],
                    "origin_jti": "b1", "jti": "b2", "event_id": "b3",
                }),
            );
            script.userinfo.insert("email_verified".into(), json!("true"));
            script.token.insert("scope".into(), json!(null));
            keeps_its_refresh_token(script);
        },
        profile: || json!({"sub": "alice", "name": "Alice Example", "cognito:groups": ["staff"]}),
        sign_out: &["client_id", "logout_uri"],
    },
    Vendor {
        name: "Apple",
        path: "",
        lines: "scope = \"openid name email\"\nresponse_mode = \"form_post\"",
        settings: BY_FORM,
        script: |script, _at| {
            without_iss_parameter(script);
            for absent in [
                "userinfo_endpoint",
                "end_session_endpoint",
                "code_challenge_methods_supported",
            ] {
                says(script, absent, Value::Null);
            }
            says(
                script,
                "token_endpoint_auth_methods_supported",
                json!(["client_secret_post"]),
            );
            claims(
                script,
                &json!({
                    "sid": null, "name": null, "email_verified": "true", "is_private_email": "true",
                    "nonce_supported": true,
                }),
            );
            let user = r#"{"name":{"firstName":"Alice","lastName":"Example"},"email":"alice@example.com"}"#;
            script.posted = vec![("user", user.to_owned())];
            script.token.insert("scope".into(), json!(null));
            keeps_its_refresh_token(script);
        },
        profile: || {
            json!({
                "sub": "alice", "name": "Alice Example", "given_name": "Alice", "family_name": "Example",
                "email": "alice@example.com", "email_verified": "true",
            })
        },
        sign_out: &[],
    },
    Vendor {
        name: "Entra ID, one tenant",
        path: "/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
        lines: "scope = \"openid profile email offline_access\"",
        settings: &[],
        script: entra,
        profile: || json!({"sub": "alice", "tid": TENANT, "oid": "c2f1", "groups": ["a", "b"]}),
        sign_out: &["post_logout_redirect_uri", "id_token_hint"],
    },
    Vendor {
        name: "Entra ID, many tenants, a person in 250 groups",
        path: "/common/v2.0",
        lines: "tenants = [\"*\"]\nendpoints = [\"groups={at}/back/groups\"]\nscope = \"openid profile email offline_access\"",
        settings: &[],
        script: |script, at| {
            entra(script, at);
            many_tenants(script, at);
            too_many_groups(script, at);
        },
        profile: || json!({"sub": "alice", "tid": TENANT, "groups": groups()}),
        sign_out: &["post_logout_redirect_uri", "id_token_hint"],
    },
    Vendor {
        name: "AD FS",
        path: "/adfs",
        lines: "scope = \"openid profile email allatclaims\"",
        settings: &[],
        script: |script, at| {
            without_iss_parameter(script);
            says(
                script,
                "token_endpoint_auth_methods_supported",
                json!([
                    "client_secret_post",
                    "client_secret_basic",
                    "private_key_jwt",
                    "windows_client_authentication"
                ]),
            );
            says(
                script,
                "access_token_issuer",
                json!(format!("{at}/adfs/services/trust")),
            );
            claims(
                script,
                &json!({
                    "sid": "S-1-5-21-1004", "name": null, "email": null, "email_verified": null, "at_hash": null,
                    "upn": "alice@example.com", "unique_name": "EXAMPLE\\alice", "apptype": "Confidential",
                    "appid": CLIENT_ID, "authmethod": "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport",
                    "ver": "1.0", "scp": "openid",
                }),
            );
            // Userinfo contains only the subject.
            for claim in ["name", "email", "email_verified"] {
                script.userinfo.insert(claim.into(), json!(null));
            }
            for (member, value) in [
                ("resource", json!("urn:microsoft:userinfo")),
                ("id_token_expires_in", json!(3600)),
            ] {
                script.token.insert(member.into(), value);
            }
            script.token.insert("token_type".into(), json!("bearer"));
            script.refresh.insert("token_type".into(), json!("bearer"));
            keeps_its_refresh_token(script);
        },
        profile: || json!({"sub": "alice", "upn": "alice@example.com", "unique_name": "EXAMPLE\\alice"}),
        sign_out: &["post_logout_redirect_uri", "id_token_hint"],
    },
    Vendor {
        name: "Okta, custom authorization server",
        path: "/oauth2/default",
        lines: "scope = \"openid profile email offline_access\"",
        settings: &[],
        script: |script, _at| {
            without_iss_parameter(script);
            claims(
                script,
                &json!({
                    "sid": null, "ver": 1, "jti": "ID.1", "amr": ["pwd"], "idp": "00o1",
                    "preferred_username": "alice@example.com", "name": null, "email": null,
                }),
            );
        },
        profile: || json!({"sub": "alice", "name": "Alice Example", "preferred_username": "alice@example.com"}),
        sign_out: &["id_token_hint", "post_logout_redirect_uri", "state"],
    },
    Vendor {
        name: "Zitadel",
        path: "",
        lines: "scope = \"openid profile email offline_access\"",
        settings: &[],
        script: |script, _at| {
            without_iss_parameter(script);
            claims(
                script,
                &json!({
                    "sid": "V1_1", "aud": ["280000000000000001@project", CLIENT_ID, "280000000000000002"],
                    "azp": CLIENT_ID, "client_id": CLIENT_ID, "jti": "V1_1-at", "amr": ["pwd"],
                    "urn:zitadel:iam:org:project:roles": {"staff": {"1": "example.com"}},
                }),
            );
        },
        profile: || {
            json!({
                "sub": "alice", "name": "Alice Example",
                "urn:zitadel:iam:org:project:roles": {"staff": {"1": "example.com"}},
            })
        },
        sign_out: &["id_token_hint", "post_logout_redirect_uri", "state"],
    },
];

fn says(script: &mut Script, member: &str, value: Value) {
    script.metadata.insert(member.into(), value);
}

fn claims(script: &mut Script, patch: &Value) {
    script.claims.extend(patch.as_object().cloned().unwrap());
}

fn without_iss_parameter(script: &mut Script) {
    script.no_callback_iss = true;
    says(
        script,
        "authorization_response_iss_parameter_supported",
        Value::Null,
    );
}

fn keeps_its_refresh_token(script: &mut Script) {
    script.rotate_refresh_tokens = false;
    script.refresh.insert("refresh_token".into(), json!(null));
    script.refresh.insert("scope".into(), json!(null));
}

/// Version 2.0 of Entra ID's endpoints.
pub(super) fn entra(script: &mut Script, _at: &str) {
    without_iss_parameter(script);
    says(script, "code_challenge_methods_supported", Value::Null);
    claims(
        script,
        &json!({
            "sid": null, "at_hash": null, "auth_time": null, "tid": TENANT, "oid": "c2f1", "ver": "2.0", "uti": "u",
            "rh": "r", "preferred_username": "alice@example.com", "groups": ["a", "b"],
        }),
    );
    script.token.insert("ext_expires_in".into(), json!(3600));
}

/// The metadata of a multi-tenant address, and tokens of one tenant.
pub(super) fn many_tenants(script: &mut Script, at: &str) {
    says(script, "issuer", json!(format!("{at}/{{tenantid}}/v2.0")));
    claims(script, &json!({"iss": format!("{at}/{TENANT}/v2.0")}));
}

/// More groups than fit into an ID token.
pub(super) fn too_many_groups(script: &mut Script, at: &str) {
    claims(
        script,
        &json!({
            "groups": null, "_claim_names": {"groups": "src1"},
            "_claim_sources": {"src1": {"endpoint": format!("{at}/obsolete/getMemberObjects")}},
        }),
    );
    script.groups = groups();
}

fn groups() -> Vec<String> {
    (0..250)
        .map(|at| format!("c0ffee00-0000-4000-8000-{at:012}"))
        .collect()
}

/// Signs in. Returns the callback's answer.
pub(super) async fn sign_in(browser: &mut Browser, by_form: bool) -> Answer {
    let login = browser.visit("/api/auth/login").await;
    assert_eq!(login.status, 302, "{login:?}");
    if !by_form {
        let callback = browser.authorize(login.location()).await;
        return browser.visit(&callback).await;
    }
    let form = form_fields(login.location()).await;
    let cross_site = [("sec-fetch-site", "cross-site"), ("accept", "text/html")];
    browser
        .post("/api/auth/callback/vendor", &cross_site, &form)
        .await
}

#[tokio::test]
async fn every_vendor_signs_in_refreshes_and_signs_out() {
    for vendor in VENDORS {
        let name = vendor.name;
        let provider = ScriptedProvider::start();
        let at = provider.issuer().to_owned();
        let issuer = format!("{at}{}", vendor.path);
        provider.script(|script| {
            says(script, "issuer", json!(issuer));
            claims(script, &json!({"iss": issuer}));
            (vendor.script)(script, &at);
        });
        let lines = vendor.lines.replace("{at}", &at);
        let settings = [&[("EDGE_ACCESS_TOKEN_ENDPOINT", "true")], vendor.settings].concat();
        let started = StandIn::start(provider, &issuer, &lines, &settings).await;
        let stack = &started.stack;
        let mut browser = stack.browser();

        let signed_in = sign_in(
            &mut browser,
            !vendor.settings.is_empty() && vendor.settings == BY_FORM,
        )
        .await;
        assert!(matches!(signed_in.status, 302 | 303), "{name}: {signed_in:?}");
        let me = browser.get("/api/auth/me").await.json();
        for reference in ["_claim_names", "_claim_sources"] {
            assert_eq!(me.get(reference), None, "{name}");
        }
        for (claim, value) in (vendor.profile)().as_object().unwrap() {
            assert_eq!(&me[claim], value, "{name}: {claim} of {me}");
        }

        stack.advance(4_000);
        let origin = stack.base().to_owned();
        let proof = [("x-csrf", "1"), ("origin", origin.as_str())];
        let token = browser.get_with("/api/auth/access-token", &proof).await;
        assert_eq!(token.status, 200, "{name}: {token:?}");
        assert_eq!(stack.provider.grants("refresh_token"), 1, "{name}");
        let still = browser.get("/api/auth/me").await.json();
        assert_eq!(
            still["groups"], me["groups"],
            "{name}: groups stay with the session"
        );

        let own = [
            ("sec-fetch-site", "none"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        let logout = browser.send(Method::GET, "/api/auth/logout", &own, None).await;
        let to = Url::parse(logout.location()).unwrap();
        if vendor.sign_out.is_empty() {
            assert_eq!(
                to.as_str(),
                format!("{}/#signed-out-here-only", stack.base()),
                "{name}"
            );
        } else {
            assert!(
                to.as_str().starts_with(&stack.provider.url(Endpoint::EndSession)),
                "{name}: {to}"
            );
        }
        for parameter in vendor.sign_out {
            assert!(
                to.query_pairs().any(|(known, _)| known == *parameter),
                "{name}: {parameter} in {to}"
            );
        }
        assert_eq!(browser.get("/api/auth/me").await.status, 204, "{name}");
    }
}

#[tokio::test]
async fn apple_gets_the_secret_in_the_body_and_gives_the_name_once() {
    let provider = ScriptedProvider::start();
    let apple = VENDORS.iter().find(|vendor| vendor.name == "Apple").unwrap();
    let issuer = provider.issuer().to_owned();
    provider.script(|script| (apple.script)(script, &issuer));
    let started = StandIn::start(provider, &issuer, apple.lines, BY_FORM).await;
    let provider = &started.stack.provider;
    let mut browser = started.stack.browser();
    sign_in(&mut browser, true).await;
    let token = provider.last_request(Endpoint::Token);
    assert!(token.param("client_secret").is_some() && token.header("authorization").is_none());
    assert_eq!(browser.get("/api/auth/me").await.json()["name"], "Alice Example");

    provider.script(|script| script.posted.clear());
    let mut later = started.stack.browser();
    sign_in(&mut later, true).await;
    assert!(later.get("/api/auth/me").await.json().get("name").is_none());

    // A form passes through the browser, so its data does not replace a signed claim.
    provider.script(|script| {
        script.posted = vec![("user", r#"{"name":{"firstName":"Mallory"}}"#.to_owned())];
        script.claims.insert("name".into(), json!("Alice Example"));
    });
    let mut again = started.stack.browser();
    sign_in(&mut again, true).await;
    assert_eq!(again.get("/api/auth/me").await.json()["name"], "Alice Example");
}
