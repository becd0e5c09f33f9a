//! A provider without special settings: the edge sends what the README says to register, finds the profile
//! wherever it is, and names the setting that fixes a refusal.

use prost::Message as _;
use scripted_provider::{Answer as Script, Endpoint};
use serde_json::json;
use session_proto::v1::GetCurrentSessionResponse;
use url::Url;

use crate::grpc_web;
use crate::support::{Browser, Log, Stack, key_file};

fn repository(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path)
}

/// The address that the README says to register for this purpose.
fn registered(what: &str, host: &str) -> String {
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let row = readme.lines().find(|line| line.starts_with(&format!("| {what}")));
    let address = row.unwrap().split('`').nth(1).unwrap();
    address.replace("https://YOUR-HOST", host)
}

fn parameter(url: &str, name: &str) -> String {
    let url = Url::parse(url).unwrap();
    let mut pairs = url.query_pairs();
    pairs.find(|(key, _)| key == name).unwrap().1.into_owned()
}

#[tokio::test]
async fn what_is_sent_is_to_the_letter_what_the_readme_says_to_register() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let login = browser.visit("/api/auth/login").await;
    assert_eq!(
        parameter(login.location(), "redirect_uri"),
        registered("redirect URI", stack.base())
    );
    browser.sign_in().await;
    let logout = browser.visit("/api/auth/logout").await;
    assert_eq!(
        parameter(logout.location(), "post_logout_redirect_uri"),
        registered("post-logout redirect URI", stack.base())
    );
}

#[test]
fn neither_the_manifests_nor_the_development_stack_send_people_elsewhere_after_sign_out() {
    let mut folders = vec![repository("k8s")];
    let mut texts = vec![std::fs::read_to_string(repository("dev/stack.mjs")).unwrap()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("chart/files/settings.yaml") {
                // That file lists every setting.
                texts.push(std::fs::read_to_string(path).unwrap_or_default());
            }
        }
    }
    assert!(texts.len() > 20, "the manifests were found");
    assert!(
        texts
            .iter()
            .all(|text| !text.contains("EDGE_POST_LOGOUT_REDIRECT"))
    );
    let registered = texts[0]
        .matches("'--post-logout-redirect-uri', `${edgeUrl}/`")
        .count();
    let all = texts[0].matches("--post-logout-redirect-uri").count();
    assert_eq!((registered, all), (1, 1));
}

/// The next sign-in's ID token contains only the subject.
fn bare_id_token(stack: &Stack) {
    stack.provider.script(|script| {
        for claim in ["name", "email", "email_verified"] {
            script.claims.insert(claim.to_owned(), json!(null));
        }
    });
}

#[tokio::test]
async fn claims_that_the_scope_promises_and_the_id_token_lacks_come_from_userinfo() {
    let stack = Stack::start().await;
    bare_id_token(&stack);
    let mut browser = stack.browser();
    browser.sign_in().await;
    let user = browser.get("/api/auth/me").await.json();
    assert_eq!(
        (&user["name"], &user["email"]),
        (&json!("Alice Example"), &json!("alice@example.com"))
    );
    assert_eq!(stack.provider.calls(Endpoint::Userinfo), 1);
}

#[tokio::test]
async fn userinfo_is_not_asked_where_the_id_token_says_all_the_scope_promises() {
    for (settings, bare) in [
        (&[][..], false),
        (&[("OIDC_SCOPE", "openid")], true),
        (&[("EDGE_USERINFO_AT_LOGIN", "never")], true),
    ] {
        let stack = Stack::with(settings).await;
        if bare {
            bare_id_token(&stack);
            stack
                .provider
                .script(|script| _ = script.token.insert("scope".into(), json!(null)));
        }
        stack.browser().sign_in().await;
        assert_eq!(stack.provider.calls(Endpoint::Userinfo), 0, "{settings:?}");
    }
}

#[tokio::test]
async fn userinfo_that_fails_keeps_nobody_out_unless_it_is_about_somebody_else() {
    let stack = Stack::start().await;
    for answer in [
        Script::status(500),
        Script::status(401),
        Script::text(200, "text/html", "<p>"),
    ] {
        bare_id_token(&stack);
        stack
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Userinfo, answer.clone()));
        let mut browser = stack.browser();
        browser.sign_in().await;
        assert_eq!(
            browser.get("/api/auth/me").await.json(),
            json!({ "sub": "alice" }),
            "{answer:?}"
        );
        stack.provider.reset();
    }
    bare_id_token(&stack);
    stack
        .provider
        .script(|script| _ = script.userinfo.insert("sub".into(), json!("mallory")));
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    assert_eq!(browser.visit(&callback).await.status, 400);
}

#[tokio::test]
async fn a_provider_without_a_userinfo_endpoint_is_not_asked_for_it() {
    let log = Log::begin();
    let stack = Stack::start().await;
    bare_id_token(&stack);
    stack
        .provider
        .script(|script| _ = script.metadata.insert("userinfo_endpoint".into(), json!(null)));
    stack.browser().sign_in().await;
    assert!(!log.text().contains("userinfo"), "{}", log.text());
}

#[tokio::test]
async fn an_assertion_is_for_the_token_endpoint_where_the_provider_refuses_the_issuer() {
    let key = key_file();
    let settings = [
        ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
        ("OIDC_CLIENT_KEY_FILE", key.path().to_str().unwrap()),
    ];
    let stack = Stack::with(&settings).await;
    let token_endpoint = stack.provider.url(Endpoint::Token);
    stack
        .provider
        .script(|script| _ = script.assertion.insert("aud".into(), json!(token_endpoint)));
    for calls in [2, 3] {
        stack.browser().sign_in().await;
        let redeemed = stack.provider.last_request(Endpoint::Token);
        let assertion = redeemed.param("client_assertion").unwrap().to_owned();
        assert_eq!(audience(&assertion), token_endpoint);
        assert_eq!(stack.provider.calls(Endpoint::Token), calls, "it is remembered");
    }
}

#[tokio::test]
async fn an_rsa_key_signs_rs256_where_the_provider_refuses_the_strongest_algorithm_it_lists() {
    let key = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../dev/scripted-provider/keys/rsa-0.pem"
    );
    let settings = [
        ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
        ("OIDC_CLIENT_KEY_FILE", key),
    ];
    let stack = Stack::with(&settings).await;
    stack.provider.script(|script| {
        let listed = "token_endpoint_auth_signing_alg_values_supported";
        script.metadata.insert(listed.into(), json!(["RS256", "PS256"]));
        script.assertion.insert("alg".into(), json!("RS256"));
    });
    for calls in [3, 4] {
        stack.browser().sign_in().await;
        assert_eq!(stack.provider.calls(Endpoint::Token), calls, "it is remembered");
    }
}

fn audience(assertion: &str) -> String {
    use base64::Engine as _;
    let claims = assertion.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims);
    let claims: serde_json::Value = serde_json::from_slice(&claims.unwrap()).unwrap();
    claims["aud"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_assertion_that_no_form_makes_acceptable_says_in_the_log_what_to_register() {
    let log = Log::begin();
    let key = key_file();
    let stack = Stack::with(&[
        ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
        ("OIDC_CLIENT_KEY_FILE", key.path().to_str().unwrap()),
    ])
    .await;
    stack.provider.script(|script| {
        let refusal = Script::json(401, &json!({ "error": "invalid_client" }));
        script.answers.insert(Endpoint::Token, refusal);
    });
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    assert_eq!(browser.visit(&callback).await.status, 400);
    assert_eq!(stack.provider.calls(Endpoint::Token), 2, "each audience once");
    log.wait_for(&["invalid_client", "OIDC_CLIENT_KEY_FILE"]).await;
}

#[tokio::test]
async fn what_the_provider_does_not_list_stops_no_login_which_says_nothing_of_it() {
    let log = Log::begin();
    let form_post = [
        ("OIDC_RESPONSE_MODE", "form_post"),
        ("EDGE_BASE_URL", "https://app.example"),
    ];
    for (settings, member, listed, setting) in [
        (
            &form_post[..],
            "response_modes_supported",
            json!(["query"]),
            "OIDC_RESPONSE_MODE",
        ),
        (
            &[("OIDC_ID_TOKEN_SIGNING_ALG", "ES384")],
            "id_token_signing_alg_values_supported",
            json!(["RS256"]),
            "OIDC_ID_TOKEN_SIGNING_ALG",
        ),
        (
            &[],
            "id_token_signing_alg_values_supported",
            json!(["HS256"]),
            "OIDC_ID_TOKEN_SIGNING_ALG",
        ),
    ] {
        let stack = Stack::with(settings).await;
        stack
            .provider
            .script(|script| _ = script.metadata.insert(member.into(), listed));
        let login = stack.browser().visit("/api/auth/login").await;
        assert_eq!(login.status, 302, "{setting}");
        assert!(
            !log.text().contains(setting),
            "the checkup at the start tells it: {}",
            log.text()
        );
    }
}

async fn provider_name(stack: &Stack, browser: &Browser) -> String {
    let cookie = format!("session={}", browser.jar["session"]);
    let answer = grpc_web::send(stack, &cookie, "GetCurrentSession", &()).await;
    let body = answer.bytes().await.unwrap();
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap());
    let message = &body[5..][..usize::try_from(length).unwrap()];
    GetCurrentSessionResponse::decode(message).unwrap().provider_name
}

#[tokio::test]
async fn people_see_the_providers_name_and_never_its_address_in_numbers() {
    for (settings, name) in [(&[][..], ""), (&[("OIDC_PROVIDER_NAME", "Acme")], "Acme")] {
        let stack = Stack::with(settings).await;
        let mut browser = stack.browser();
        browser.sign_in().await;
        assert_eq!(provider_name(&stack, &browser).await, name);
    }
}
