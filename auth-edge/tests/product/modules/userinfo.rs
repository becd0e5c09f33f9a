//! Userinfo: the request, and the accepted answers.

use scripted_provider::{Answer as Script, Endpoint};
use serde_json::json;

use super::{Plan, accepted};

const SCOPE: [(&str, &str); 1] = [("OIDC_SCOPE", "openid profile email phone address")];

// conformance: A-004 A-021 A-041
#[tokio::test]
async fn claims_come_from_userinfo_and_the_token_travels_in_the_header_alone() {
    let behave = |script: &mut scripted_provider::Script| {
        script.userinfo.insert("phone_number".into(), json!("+49 30 1"));
        script
            .userinfo
            .insert("address".into(), json!({ "country": "DE" }));
    };
    for (stack, mut browser) in accepted(&SCOPE, behave).await {
        let user = browser.get("/api/auth/me").await.json();
        assert_eq!(user["phone_number"], "+49 30 1");
        assert_eq!(user["address"]["country"], "DE");
        let request = stack.provider.last_request(Endpoint::Userinfo);
        assert!(
            request
                .header("authorization")
                .unwrap()
                .starts_with("Bearer access-")
        );
        assert!(request.query.is_empty() && request.form.is_empty());
        let scope = stack.provider.last_request(Endpoint::Authorize);
        assert_eq!(scope.param("scope"), Some(SCOPE[0].1));
    }
}

// conformance: B-104
#[tokio::test]
async fn signed_userinfo_is_verified_and_nonsense_is_refused() {
    let signed = accepted(&[], |script| script.userinfo_jwt = true).await;
    assert_eq!(signed.len(), 2);
    let person = json!({ "sub": "alice" });
    let [plan, _] = Plan::both(&[]).await;
    for answer in [
        Script::json(200, &json!([person])),
        Script::json(200, &json!(null)),
        Script::text(200, "text/html", "<html></html>"),
        Script::text(200, "application/jwt", "e30.e30.AAAA"),
        Script::text(200, "application/json", "{\"sub\":\"alice\",\"sub\":\"eve\"}"),
        Script::json(200, &json!({ "sub": "mallory" })),
        Script::json(200, &json!({})),
        Script::status(401),
    ] {
        plan.stack
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Userinfo, answer.clone()));
        let mut browser = plan.stack.browser();
        let refused = plan.sign_in(&mut browser).await;
        assert_eq!(refused.status, 400, "{answer:?}");
        assert!(refused.set_cookie("session").is_none());
    }
}

#[tokio::test]
async fn userinfo_overrides_nothing_the_id_token_vouches_for() {
    let behave = |script: &mut scripted_provider::Script| {
        script.claims.insert("acr".into(), json!("bronze"));
        script.claims.insert("amr".into(), json!(["pwd"]));
        for (name, value) in [
            ("acr", json!("gold")),
            ("amr", json!(["hwk"])),
            ("sid", json!("x")),
        ] {
            script.userinfo.insert(name.into(), value);
        }
    };
    for (_, mut browser) in accepted(&[], behave).await {
        let user = browser.get("/api/auth/me").await.json();
        assert_eq!((&user["acr"], &user["amr"]), (&json!("bronze"), &json!(["pwd"])));
        assert_ne!(user["sid"], "x");
    }
}
