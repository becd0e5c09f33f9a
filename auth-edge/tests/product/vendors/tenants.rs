//! A multi-tenant address: which people may sign in, and what happens to their groups.

use scripted_provider::{Answer, Endpoint, ScriptedProvider};
use serde_json::json;

use super::scripted::{TENANT, entra, many_tenants, sign_in, too_many_groups};
use super::stand_in::StandIn;

const OTHER: &str = "11111111-2222-4333-8444-555555555555";

/// The multi-tenant stack, with these tenants and further lines.
async fn started(tenants: &str, lines: &str, groups: bool) -> StandIn {
    let provider = ScriptedProvider::start();
    let at = provider.issuer().to_owned();
    provider.script(|script| {
        entra(script, &at);
        many_tenants(script, &at);
        if groups {
            too_many_groups(script, &at);
        }
    });
    let lines = format!("tenants = [\"{tenants}\"]\n{}", lines.replace("{at}", &at));
    let issuer = format!("{at}/organizations/v2.0");
    StandIn::start(provider, &issuer, &lines, &[]).await
}

async fn status(started: &StandIn) -> u16 {
    sign_in(&mut started.stack.browser(), false).await.status
}

#[tokio::test]
async fn only_people_of_allowed_tenants_sign_in_and_the_issuer_fits_the_tenant() {
    let listed = started(TENANT, "", false).await;
    assert_eq!(status(&listed).await, 302);
    let refused = started(OTHER, "", false).await;
    assert_eq!(status(&refused).await, 400);

    let any = started("*", "", false).await;
    let (provider, at) = (&any.stack.provider, any.stack.provider.issuer().to_owned());
    for (claim, value) in [
        ("tid", json!(OTHER)),
        ("tid", json!(null)),
        ("iss", json!(format!("{at}/{OTHER}/v2.0"))),
        ("iss", json!(format!("{at}/organizations/v2.0"))),
        ("iss", json!(format!("{at}/{{tenantid}}/v2.0"))),
        ("iss", json!(format!("https://evil.example/{TENANT}/v2.0"))),
    ] {
        let right = json!({"tid": TENANT, "iss": format!("{at}/{TENANT}/v2.0")});
        provider.script(|script| drop(script.claims.insert(claim.into(), value.clone())));
        assert_eq!(status(&any).await, 400, "{claim} {value}");
        provider.script(|script| drop(script.claims.insert(claim.into(), right[claim].clone())));
    }
    provider.script(|script| {
        script.no_callback_iss = false;
        script.callback_iss = Some(format!("{at}/{TENANT}/v2.0"));
    });
    assert_eq!(status(&any).await, 302, "iss of the answer names the tenant");
    provider.script(|script| script.callback_iss = Some("https://evil.example".to_owned()));
    assert_eq!(status(&any).await, 400);
}

#[tokio::test]
async fn a_logout_token_of_a_tenant_ends_its_sessions_alone() {
    let any = started("*", "", false).await;
    let at = any.stack.provider.issuer().to_owned();
    any.stack
        .provider
        .script(|script| drop(script.claims.insert("sid".into(), json!("sid-1"))));
    let mut browser = any.stack.browser();
    sign_in(&mut browser, false).await;
    for (tenant, status) in [(OTHER, 200), (TENANT, 204)] {
        let claims = json!({"iss": format!("{at}/{tenant}/v2.0"), "sub": null, "sid": "sid-1"});
        let token = any.stack.provider.logout_token(claims);
        let form = format!("logout_token={token}");
        let answer = any
            .stack
            .browser()
            .post("/api/auth/backchannel-logout", &[], &form)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(browser.get("/api/auth/me").await.status, status, "{tenant}");
    }
}

#[tokio::test]
async fn groups_that_cannot_be_read_are_a_plain_error_and_off_leaves_them_out() {
    let read = started("*", "endpoints = [\"groups={at}/back/groups\"]", true).await;
    let provider = &read.stack.provider;
    provider.script(|script| drop(script.answers.insert(Endpoint::Groups, Answer::status(403))));
    let refused = sign_in(&mut read.stack.browser(), false).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("groups") && refused.body.contains("will not help"),
        "{refused:?}"
    );
    assert!(
        !refused.body.contains("/api/auth/login"),
        "nothing to try again: {refused:?}"
    );
    provider.script(|script| drop(script.answers.insert(Endpoint::Groups, Answer::status(500))));
    let later = sign_in(&mut read.stack.browser(), false).await;
    assert!(
        later.status == 400 && later.body.contains("Try again"),
        "{later:?}"
    );
    // The token is sent only to the configured address.
    let elsewhere = json!({"value": [], "@odata.nextLink": "http://127.0.0.1:1/groups"});
    provider.script(|script| {
        drop(
            script
                .answers
                .insert(Endpoint::Groups, Answer::json(200, &elsewhere)),
        )
    });
    assert_eq!(status(&read).await, 400);
    let endless = json!({"value": [], "@odata.nextLink": provider.url(Endpoint::Groups)});
    provider.script(|script| {
        drop(
            script
                .answers
                .insert(Endpoint::Groups, Answer::json(200, &endless)),
        )
    });
    let calls = provider.calls(Endpoint::Groups);
    assert_eq!(status(&read).await, 400);
    assert_eq!(provider.calls(Endpoint::Groups) - calls, 4, "pages are bounded");

    let off = started("*", "endpoints = [\"groups=off\"]", true).await;
    let mut browser = off.stack.browser();
    assert_eq!(sign_in(&mut browser, false).await.status, 302);
    assert!(browser.get("/api/auth/me").await.json().get("groups").is_none());
    assert_eq!(off.stack.provider.calls(Endpoint::Groups), 0);
}
