//! Requirements of a guard beyond a session: each one met and not met, by a page and by an API.

use serde_json::json;

use crate::gateway::{Gateway, UNAUTHORIZED};
use crate::support::Answer;

const RULES: &str = r#"
[[route]]
path = "/ask/api/max-age"
guard = "api"
upstream = "{upstream}"
max_age = 900
[[route]]
path = "/ask/api/acr"
guard = "api"
upstream = "{upstream}"
acr = ["gold", "urn:example:silver"]
max_age = 3600
[[route]]
path = "/ask/api/scopes"
guard = "api"
upstream = "{upstream}"
scopes = ["openid", "orders:read"]
[[route]]
path = "/ask/api/token"
guard = "api"
upstream = "{upstream}"
require_token = true
[[route]]
path = "/ask/api/organization"
guard = "api"
upstream = "{upstream}"
organization = "org_1"
[[route]]
path = "/ask/api/claims"
guard = "api"
upstream = "{upstream}"
claims = { groups = "admin" }
[[route]]
path = "/ask/page/*"
guard = "page"
upstream = "{upstream}"
acr = ["gold"]
max_age = 900
organization = "org_1"
[[route]]
path = "/ask/token/*"
guard = "page"
upstream = "{upstream}"
require_token = true
"#;

fn answered(answer: &Answer) -> (u16, &str, &str) {
    (
        answer.status,
        answer.header("www-authenticate"),
        answer.body.as_str(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_says_what_sign_in_it_needs_and_keeps_its_words() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway
        .signed_in_as(json!({"sub": "a", "acr": "bronze"}), "openid")
        .await;
    let challenge = "Bearer error=\"insufficient_user_authentication\", error_description=\"A different sign-in is needed\"";
    assert_eq!(
        answered(&browser.get("/ask/api/acr").await),
        (
            401,
            format!("{challenge}, acr_values=\"gold urn:example:silver\", max_age=\"3600\"").as_str(),
            UNAUTHORIZED
        )
    );
    assert_eq!(browser.get("/ask/api/max-age").await.status, 200);
    gateway.stack.advance(901);
    assert_eq!(
        answered(&browser.get("/ask/api/max-age").await),
        (
            401,
            format!("{challenge}, max_age=\"900\"").as_str(),
            UNAUTHORIZED
        )
    );
    let mut stranger = gateway.stack.browser();
    assert_eq!(
        answered(&stranger.get("/ask/api/acr").await),
        (401, "", UNAUTHORIZED),
        "without a session there is nothing to step up from"
    );
    let mut silver = gateway
        .signed_in_as(json!({"sub": "a", "acr": "urn:example:silver"}), "openid")
        .await;
    assert_eq!(silver.get("/ask/api/acr").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_signing_in_again_does_not_bring_is_403() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway
        .signed_in_as(
            json!({"sub": "a", "groups": ["staff"], "org_id": "org_2"}),
            "openid",
        )
        .await;
    let scopes = browser.get("/ask/api/scopes").await;
    assert_eq!(
        (scopes.status, scopes.header("www-authenticate")),
        (
            403,
            "Bearer error=\"insufficient_scope\", scope=\"openid orders:read\""
        )
    );
    assert_eq!(scopes.json()["error"], "ERR_INSUFFICIENT_SCOPE");
    assert_eq!(scopes.json()["scopes"], "orders:read");
    for (path, code) in [
        ("/ask/api/claims", "insufficient_claims"),
        ("/ask/api/organization", "wrong_organization"),
    ] {
        let answer = browser.get(path).await;
        assert_eq!(
            (answer.status, answer.json()["error"].as_str()),
            (403, Some(code))
        );
    }
    let claims = browser.get("/ask/api/claims").await.json();
    assert_eq!(
        (&claims["claims"], claims.get("message")),
        (&json!(["groups"]), None)
    );
    assert_eq!(gateway.upstream.requests().len(), 0);
    let mut member = gateway
        .signed_in_as(
            json!({"sub": "a", "groups": ["admin"], "org_id": "org_1"}),
            "openid orders:read",
        )
        .await;
    for path in [
        "/ask/api/scopes",
        "/ask/api/claims",
        "/ask/api/organization",
        "/ask/api/token",
    ] {
        assert_eq!(member.get(path).await.status, 200, "{path}");
    }
    for seen in gateway.upstream.requests() {
        let sent = seen.all("authorization");
        assert_eq!(
            sent,
            Vec::<String>::new(),
            "{}: required, not passed on",
            seen.target
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_which_claim_is_missing_whom_to_ask_and_how_to_come_as_somebody_else() {
    let rule = |path: &str, more: &str| {
        format!(
            "[[route]]\npath = \"{path}\"\nguard = \"page\"\nupstream = \"{{upstream}}\"\n\
             claims = {{ groups = [\"top-secret\", \"other\"], email_verified = true }}\n{more}"
        )
    };
    let rules =
        rule("/told/*", "denied_message = \"Ask <finance> at extension 7.\"\n") + &rule("/silent/*", "");
    let gateway = Gateway::start(&rules, &[]).await;
    let person = json!({"sub": "a", "groups": ["staff"], "email_verified": true});
    let mut browser = gateway.signed_in_as(person, "openid").await;
    let page = browser.visit("/told/a?b=c").await;
    assert_eq!(page.status, 403);
    for words in [
        "Ask &lt;finance&gt; at extension 7.",
        "Required: groups<",
        "/api/auth/login?returnTo=%2Ftold%2Fa%3Fb%3Dc&amp;prompt=login",
        "Use another account",
    ] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    let silent = browser.visit("/silent/a").await;
    assert!(
        silent.body.contains("Ask the operator of this site"),
        "{}",
        silent.body
    );
    let program = browser.get("/told/a").await.json();
    assert_eq!(program["message"], "Ask <finance> at extension 7.");
    for body in [page.body, silent.body, program.to_string()] {
        assert!(!body.contains("top-secret") && !body.contains("staff"), "{body}");
    }
    let both = json!({"sub": "a", "groups": ["other"], "email_verified": true});
    assert_eq!(
        gateway
            .signed_in_as(both, "openid")
            .await
            .visit("/told/a")
            .await
            .status,
        200
    );
    let one = json!({"sub": "a", "groups": ["other"], "email_verified": "true"});
    let one = gateway.signed_in_as(one, "openid").await.get("/told/a").await;
    assert_eq!(
        (one.status, &one.json()["claims"]),
        (403, &json!(["email_verified"]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_can_not_be_had_is_401_by_its_reason() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway.signed_in().await;
    assert_eq!(browser.get("/ask/api/token").await.status, 200);
    gateway.stack.advance(3_600);
    let answer = browser.get("/ask/api/token").await;
    assert_eq!(
        (answer.status, answer.json()["error"].as_str()),
        (401, Some("ERR_EXPIRED_ACCESS_TOKEN"))
    );
    let page = browser.visit("/ask/token/a").await;
    assert_eq!(page.status, 307, "a person is sent to sign in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_sends_to_a_sign_in_with_all_it_requires() {
    let gateway = Gateway::start(RULES, &[]).await;
    let expected =
        "/api/auth/login?returnTo=%2Fask%2Fpage%2Fa%3Fb%3Dc&max_age=900&acr_values=gold&organization=org_1";
    let mut stranger = gateway.stack.browser();
    assert_eq!(stranger.visit("/ask/page/a?b=c").await.location(), expected);
    let mut browser = gateway
        .signed_in_as(json!({"sub": "a", "acr": "gold", "org_id": "org_1"}), "openid")
        .await;
    assert_eq!(browser.visit("/ask/page/a?b=c").await.status, 200);
    gateway.stack.advance(901);
    assert_eq!(browser.visit("/ask/page/a?b=c").await.location(), expected);
    // Not even a young session meets the rule, because no sign-in has requested it yet.
    for user in [
        json!({"sub": "a", "acr": "bronze", "org_id": "org_1"}),
        json!({"sub": "a", "acr": "gold", "org_id": "org_2"}),
    ] {
        let mut browser = gateway.signed_in_as(user, "openid").await;
        assert_eq!(browser.visit("/ask/page/a?b=c").await.location(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_meets_a_dead_session_says_so_to_the_person_who_sent_it() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    let own = gateway.stack.base().to_owned();
    let navigation = [
        ("accept", "text/html,*/*;q=0.8"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "same-origin"),
        ("origin", own.as_str()),
    ];
    let answer = browser.post("/account/order", &navigation, "amount=1").await;
    assert_eq!(answer.status, 401);
    assert!(answer.header("content-type").starts_with("text/html"));
    assert!(answer.body.contains("nothing changed") && answer.body.contains("/api/auth/login"));
    let program = browser
        .post("/account/order", &[("accept", "application/json")], "amount=1")
        .await;
    assert_eq!((program.status, program.body.as_str()), (401, UNAUTHORIZED));
    assert_eq!(gateway.upstream.requests().len(), 0);
}
