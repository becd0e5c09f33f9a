//! One token per API: each upstream gets only its own. If the provider refuses a token, the answer says so,
//! and no new sign-in starts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Endpoint, ScriptedProvider};
use serde_json::json;

use crate::gateway::Gateway;
use crate::support::Browser;

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Three APIs, one of them for a page.
const ROUTES: &str = "[[route]]\npath = \"/orders/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\naccess_token = true\naudience = \"orders\"\n\
    [[route]]\npath = \"/orders/write/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\naccess_token = true\naudience = \"orders\"\nscopes = [\"write\"]\n\
    [[route]]\npath = \"/billing/*\"\nguard = \"page\"\nupstream = \"{upstream}\"\naccess_token = true\nresource = \"https://billing.example/api\"\n";

const PATHS: [&str; 4] = ["/token/a", "/orders/a", "/orders/write/a", "/billing/a"];

async fn signed_in(gateway: &Gateway) -> Browser {
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    browser
}

/// The `Authorization` of the upstream's last request.
fn shown(gateway: &Gateway) -> String {
    let seen = gateway.upstream.requests().pop().unwrap();
    let all = seen.all("authorization");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].to_owned()
}

fn exchanges(gateway: &Gateway) -> usize {
    gateway.stack.provider.grants(EXCHANGE)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_upstream_gets_the_token_of_its_own_api() {
    let gateway = Gateway::start(ROUTES, &[]).await;
    let mut browser = signed_in(&gateway).await;
    let mut tokens = Vec::new();
    for path in PATHS {
        assert_eq!(browser.get(path).await.status, 200, "{path}");
        tokens.push(shown(&gateway));
    }
    let sent = gateway.stack.provider.requests(Endpoint::Token);
    let sent: Vec<_> = sent
        .iter()
        .filter(|request| request.param("grant_type") == Some(EXCHANGE))
        .collect();
    let named: Vec<_> = sent
        .iter()
        .map(|request| ["audience", "resource", "scope"].map(|name| request.param(name)))
        .collect();
    assert_eq!(
        named,
        [
            [Some("orders"), None, None],
            [Some("orders"), None, Some("write")],
            [None, Some("https://billing.example/api"), None],
        ]
    );
    for (path, token) in PATHS.iter().zip(&tokens) {
        assert_eq!(browser.get(path).await.status, 200, "{path}");
        assert_eq!(shown(&gateway), *token, "{path}");
    }
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), PATHS.len());
    assert_eq!(exchanges(&gateway), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_people_at_once_never_get_a_token_of_another_or_of_another_api() {
    let gateway = Gateway::start(ROUTES, &[]).await;
    let mut people = Vec::new();
    for _ in 0..10 {
        people.push(signed_in(&gateway).await);
    }
    let calls = people.iter().enumerate().flat_map(|(person, browser)| {
        PATHS
            .iter()
            .flat_map(move |path| (0..3).map(move |_| (person, *path, browser.clone())))
    });
    let answers = calls.map(|(person, path, mut browser)| async move {
        let target = format!("{path}?person={person}");
        assert_eq!(browser.get(&target).await.status, 200);
    });
    futures_util::future::join_all(answers).await;
    let seen: BTreeSet<(String, String)> = gateway
        .upstream
        .requests()
        .iter()
        .map(|seen| (seen.target.clone(), seen.all("authorization")[0].to_owned()))
        .collect();
    let tokens: BTreeSet<&String> = seen.iter().map(|(_, token)| token).collect();
    assert_eq!(
        (seen.len(), tokens.len()),
        (40, 40),
        "one for each person and API"
    );
    assert_eq!(exchanges(&gateway), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_an_api_refuses_is_renewed_for_that_api_alone() {
    let gateway = Gateway::start(ROUTES, &[]).await;
    let mut browser = signed_in(&gateway).await;
    let refused: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let first: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let revoked = Arc::clone(&refused);
    gateway.upstream.answer_by(move |seen| {
        let api = seen.target.split('/').nth(1).unwrap_or_default().to_owned();
        let token = seen.all("authorization")[0].clone();
        // The first token each API sees.
        let is_first = first.lock().unwrap().insert(api);
        if is_first {
            revoked.lock().unwrap().insert(token.clone());
        }
        let challenge = [("www-authenticate", "Bearer error=\"invalid_token\"")];
        let is_revoked = revoked.lock().unwrap().contains(&token);
        is_revoked.then(|| (StatusCode::UNAUTHORIZED, challenge).into_response())
    });
    // Both within the pause between two refreshes of one token.
    for path in ["/orders/a", "/billing/a"] {
        assert_eq!(browser.get(path).await.status, 200, "{path}");
    }
    assert_eq!(gateway.upstream.requests().len(), 4);
    assert_eq!(exchanges(&gateway), 4);
    assert_eq!(gateway.stack.provider.grants("refresh_token"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_refuses_is_told_to_people_too_and_no_sign_in_is_tried() {
    for (error, code) in [
        ("invalid_target", "ERR_INVALID_TARGET"),
        ("unsupported_grant_type", "ERR_FAILED_TOKEN_EXCHANGE"),
    ] {
        let gateway = Gateway::start(ROUTES, &[]).await;
        let mut browser = signed_in(&gateway).await;
        gateway
            .stack
            .provider
            .script(|script| script.exchange_error = Some(error.to_owned()));
        for path in ["/orders/a", "/billing/a"] {
            let answer = browser.get(path).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]),
                (403, &json!(code)),
                "{path}"
            );
            assert_eq!(browser.visit(path).await.status, 403, "{path}");
        }
        assert_eq!(gateway.upstream.requests().len(), 0);
        assert_eq!(
            browser.get("/token/a").await.status,
            200,
            "the session is as good as before"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_refresh_the_resource_is_named_and_without_a_refresh_token_no_sign_in_is_tried() {
    let gateway = Gateway::start(ROUTES, &[("OIDC_API_TOKENS", "refresh")]).await;
    let mut browser = signed_in(&gateway).await;
    assert_eq!(browser.get("/billing/a").await.status, 200);
    let sent = gateway.stack.provider.last_request(Endpoint::Token);
    assert_eq!(sent.param("resource"), Some("https://billing.example/api"));
    assert_eq!(exchanges(&gateway), 0);
    gateway
        .stack
        .provider
        .script(|script| _ = script.token.insert("refresh_token".into(), json!(null)));
    let mut browser = signed_in(&gateway).await;
    let answer = browser.visit("/billing/a").await;
    assert_eq!(answer.status, 401, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn forward_auth_hands_out_the_token_of_the_api_its_configuration_names() {
    let settings = [
        ("EDGE_CHECK_AUTHORIZATION", "true"),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let gateway = Gateway::start("", &settings).await;
    let mut browser = signed_in(&gateway).await;
    let about = [("x-forwarded-uri", "/a")];
    let mut tokens = BTreeSet::new();
    for query in [
        "",
        "?audience=orders",
        "?resource=https%3A%2F%2Fbilling.example%2F&scope=read+write",
    ] {
        let answer = browser.get_with(&format!("/api/auth/check{query}"), &about).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        tokens.insert(answer.header("authorization").to_owned());
    }
    assert_eq!((tokens.len(), exchanges(&gateway)), (3, 2));
    let sent = gateway.stack.provider.last_request(Endpoint::Token);
    assert_eq!(
        (sent.param("resource"), sent.param("scope")),
        (Some("https://billing.example/"), Some("read write"))
    );
    gateway
        .stack
        .provider
        .script(|script| script.exchange_error = Some("invalid_target".to_owned()));
    let answer = browser
        .get_with("/api/auth/check?audience=secrets&redirect=1", &about)
        .await;
    assert_eq!(
        (answer.status, &answer.json()["error"]),
        (403, &json!("ERR_INVALID_TARGET"))
    );
    let page = browser.get("/api/auth/check?audience=orders").await;
    assert_eq!(
        (page.status, page.header("authorization")),
        (200, ""),
        "no page gets one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_checks_names_the_api_and_no_query_overrides_it() {
    let rules = "[[check]]\nguard = \"api\"\naudience = \"orders\"\nscopes = [\"read\"]\n";
    let settings = [
        ("EDGE_CHECK_AUTHORIZATION", "true"),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let gateway = Gateway::start(rules, &settings).await;
    let mut browser = signed_in(&gateway).await;
    let about = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "app.localhost"),
        ("x-forwarded-uri", "/a"),
    ];
    let mut tokens = BTreeSet::new();
    for query in ["", "?audience=billing"] {
        let answer = browser.get_with(&format!("/api/auth/check{query}"), &about).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        tokens.insert(answer.header("authorization").to_owned());
    }
    assert_eq!((tokens.len(), exchanges(&gateway)), (1, 1));
    let sent = gateway.stack.provider.last_request(Endpoint::Token);
    assert_eq!(
        (sent.param("audience"), sent.param("scope")),
        (Some("orders"), Some("read"))
    );
    gateway
        .stack
        .provider
        .script(|script| script.exchange_error = Some("invalid_target".to_owned()));
    let mut other = signed_in(&gateway).await;
    let answer = other.get_with("/api/auth/check?redirect=1", &about).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]),
        (403, &json!("ERR_INVALID_TARGET"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_of_another_domain_gets_the_token_of_its_own_server() {
    let (chat, mut secret) = (ScriptedProvider::start(), tempfile::NamedTempFile::new().unwrap());
    std::io::Write::write_all(&mut secret, CLIENT_SECRET.as_bytes()).unwrap();
    let servers = format!(
        "[[server]]\naudience = \"chat\"\nissuer = {:?}\nclient_id = {CLIENT_ID:?}\nclient_secret_file = {:?}\n",
        chat.issuer(),
        secret.path(),
    );
    let routes = "[[route]]\npath = \"/chat/*\"\nguard = \"page\"\nupstream = \"{upstream}\"\naccess_token = true\naudience = \"chat\"\n";
    let gateway = Gateway::start(routes, &[("SESSION_API_SERVERS", &servers)]).await;
    let mut browser = signed_in(&gateway).await;
    for path in ["/chat/a", "/chat/b"] {
        assert_eq!(browser.get(path).await.status, 200, "{path}");
        assert!(
            shown(&gateway).starts_with("Bearer cross-"),
            "{}",
            shown(&gateway)
        );
    }
    let assertions = chat.grants("urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!((exchanges(&gateway), assertions), (1, 1));
    assert_eq!(browser.get("/token/a").await.status, 200);
    assert!(
        !shown(&gateway).contains("cross-"),
        "other APIs get no token of it"
    );
    chat.script(|script| script.jwt_bearer_error = Some("invalid_grant".to_owned()));
    let mut other = signed_in(&gateway).await;
    let answer = other.get("/chat/a").await;
    let expected = json!("ERR_FAILED_TOKEN_EXCHANGE");
    assert_eq!((answer.status, &answer.json()["error"]), (403, &expected));
    assert_eq!(other.visit("/chat/a").await.status, 403, "no sign-in starts");
}
