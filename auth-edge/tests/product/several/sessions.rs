//! Calls for a session go to the provider that the session came from.

use reqwest::Method;
use scripted_provider::{Endpoint, ScriptedProvider};
use serde_json::json;

use super::{Two, parameter};
use crate::support::{Browser, EVENTS_AUDIENCE, NAVIGATION};

const BACK_CHANNEL: &str = "/api/auth/backchannel-logout";

fn grants(two: &Two) -> (usize, usize) {
    let of = |provider: &ScriptedProvider| provider.grants("refresh_token");
    (of(two.a()), of(&two.b))
}

async fn token(two: &Two, browser: &mut Browser) -> String {
    let origin = two.stack.base().to_owned();
    let proof = [("x-csrf", "1"), ("origin", origin.as_str())];
    let answer = browser.get_with("/api/auth/access-token", &proof).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_is_refreshed_at_the_provider_it_came_from() {
    let two = Two::with("", "", &[("EDGE_ACCESS_TOKEN_ENDPOINT", "true")]).await;
    for provider in [two.a(), &two.b] {
        provider.script(|script| {
            script.token.insert("expires_in".to_owned(), json!(30));
        });
    }
    let (mut of_a, mut of_b) = (two.signed_in("a").await, two.signed_in("b").await);
    two.stack.advance(16); // more than half of a token's life
    let token_of_a = token(&two, &mut of_a).await;
    assert_eq!(grants(&two), (1, 0));
    let token_of_b = token(&two, &mut of_b).await;
    assert_eq!(grants(&two), (1, 1));
    assert!(two.a().knows_access_token(&token_of_a));
    assert!(two.b.knows_access_token(&token_of_b));
}

#[tokio::test]
async fn signing_out_ends_the_session_of_its_own_provider_and_takes_its_token_back_there() {
    let two = Two::start().await;
    let mut of_b = two.signed_in("b").await;
    let answer = of_b.visit("/api/auth/logout").await;
    let location = url::Url::parse(answer.location()).unwrap();
    assert!(location.as_str().starts_with(two.b.issuer()), "{location}");
    assert!(parameter(&location, "id_token_hint").is_some());
    two.b.wait_for_calls(Endpoint::Revocation, 1).await;
    assert_eq!(two.a().calls(Endpoint::Revocation), 0);
}

#[tokio::test]
async fn userinfo_is_read_where_the_session_came_from() {
    let two = Two::with("", "", &[("EDGE_USERINFO_AT_LOGIN", "always")]).await;
    two.b.script(|script| {
        script.userinfo.insert("name".to_owned(), json!("Bea"));
    });
    let mut of_b = two.signed_in("b").await;
    assert_eq!(of_b.get("/api/auth/me?refetch=true").await.json()["name"], "Bea");
    assert_eq!(
        (two.a().calls(Endpoint::Userinfo), two.b.calls(Endpoint::Userinfo)),
        (0, 2)
    );
}

#[tokio::test]
async fn sign_ins_are_counted_for_their_own_provider() {
    let two = Two::start().await;
    two.signed_in("b").await;
    two.signed_in("b").await;
    two.stack
        .browser()
        .get("/api/auth/callback/a?state=unknown&code=x")
        .await;
    two.stack.browser().get("/api/auth/callback/nobody?code=x").await;
    let count = |result: &str, provider: &str| {
        let families = two.stack.metrics.gather();
        let logins = families.iter().find(|family| family.name() == "logins_total");
        let labelled = |metric: &&prometheus::proto::Metric| {
            let labels = metric.get_label().iter().map(|pair| (pair.name(), pair.value()));
            labels.eq([("provider", provider), ("result", result)])
        };
        let metrics = logins.unwrap().get_metric();
        let found = metrics.iter().find(labelled);
        (
            found.map(|metric| metric.get_counter().get_value().to_string()),
            metrics.len(),
        )
    };
    assert_eq!(count("success", "b"), (Some("2".to_owned()), 2));
    assert_eq!(count("rejected", "a").0, Some("1".to_owned()));
}

/// Two people who differ only in their issuer.
async fn namesakes(two: &Two) -> (Browser, Browser) {
    for provider in [two.a(), &two.b] {
        provider.script(|script| script.sid = Some("sid-1".to_owned()));
    }
    (two.signed_in("a").await, two.signed_in("b").await)
}

async fn both(of_a: &mut Browser, of_b: &mut Browser) -> (u16, u16) {
    let a = of_a.get("/api/auth/me").await.status;
    (a, of_b.get("/api/auth/me").await.status)
}

#[tokio::test]
async fn a_back_channel_logout_ends_sessions_of_its_own_issuer_alone() {
    let two = Two::start().await;
    let (mut of_a, mut of_b) = namesakes(&two).await;
    let mut machine = two.stack.browser();
    // Signed by a, claiming b, whose key may appear later; an unknown issuer; no issuer.
    for (iss, expected) in [
        (json!(two.b.issuer()), 503),
        (json!("https://evil.example"), 400),
        (json!(null), 400),
    ] {
        let token = two
            .a()
            .logout_token(json!({"iss": iss, "sub": "alice", "sid": "sid-1"}));
        let answer = machine
            .post(BACK_CHANNEL, &[], &format!("logout_token={token}"))
            .await;
        assert_eq!(answer.status, expected, "{iss}: {answer:?}");
    }
    assert_eq!(both(&mut of_a, &mut of_b).await, (200, 200));
    // The same jti at both: one provider's token is not a replay of the other's.
    for (provider, left) in [(two.a(), (204, 200)), (&two.b, (204, 204))] {
        let token = provider.logout_token(json!({"sub": "alice", "sid": "sid-1", "jti": "jti-1"}));
        let answer = machine
            .post(BACK_CHANNEL, &[], &format!("logout_token={token}"))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(both(&mut of_a, &mut of_b).await, left);
    }
}

#[tokio::test]
async fn a_front_channel_logout_ends_sessions_of_its_own_issuer_alone() {
    let two = Two::with("", "", &[("EDGE_FRONTCHANNEL_LOGOUT", "true")]).await;
    let (mut of_a, mut of_b) = namesakes(&two).await;
    let issuer = two.b.issuer().to_owned();
    let frame = format!("/api/auth/frontchannel-logout?iss={issuer}&sid=sid-1");
    let answer = two.stack.browser().get(&frame).await;
    let policy = answer.header("content-security-policy");
    assert!(policy.ends_with(&format!("frame-ancestors {issuer}")), "{policy}");
    assert_eq!(both(&mut of_a, &mut of_b).await, (200, 204));
}

#[tokio::test]
async fn who_asks_whether_somebody_may_pass_learns_the_issuer_with_the_subject() {
    let two = Two::start().await;
    let (mut of_a, mut of_b) = namesakes(&two).await;
    let a = of_a.get("/api/auth/check").await;
    let b = of_b.get("/api/auth/check").await;
    assert_eq!(a.header("x-auth-subject"), b.header("x-auth-subject"));
    assert_eq!(a.header("x-auth-issuer"), two.a().issuer());
    assert_eq!(b.header("x-auth-issuer"), two.b.issuer());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_without_a_rule_sends_who_owes_a_sign_in_to_the_provider_it_is_owed_to() {
    let settings = [
        ("SESSION_SIGNALS", "email = false"),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1/32"),
    ];
    let two = Two::with("", "", &settings).await;
    let mut alice = two.signed_in("a").await;
    two.stack.advance(60);
    let event = two.a().security_event(json!({
        "aud": EVENTS_AUDIENCE, "iat": two.stack.clock_secs(),
        "sub_id": { "format": "iss_sub", "iss": two.a().issuer(), "sub": "alice" },
        "events": { "https://schemas.openid.net/secevent/caep/event-type/credential-change": { "credential_type": "password", "change_type": "update" } },
    }));
    let push = [("content-type", "application/secevent+jwt")];
    let taken = two
        .stack
        .browser()
        .send(Method::POST, "/api/auth/events", &push, Some(event))
        .await;
    assert_eq!(taken.status, 202, "{taken:?}");
    let host = alice.host().to_owned();
    let mut about = NAVIGATION.to_vec();
    about.extend([
        ("x-forwarded-uri", "/elsewhere"),
        ("x-forwarded-host", host.as_str()),
        ("x-forwarded-proto", "http"),
    ]);
    let sent = alice.get_with("/api/auth/check?redirect=1", &about).await;
    assert_eq!(sent.status, 302, "{sent:?}");
    let login = url::Url::parse(sent.location()).unwrap();
    assert_eq!(parameter(&login, "connection").as_deref(), Some("a"), "{login}");
}
