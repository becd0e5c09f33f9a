//! Requests without a valid token: each gets a challenge with the reason, and nothing is forwarded.

use std::time::{Duration, Instant};

use scripted_provider::{CLIENT_ID, Endpoint};
use serde_json::{Value, json};

use super::{Machines, challenges};

/// The error code in the body; the challenge has the same one.
fn code(answer: &crate::support::Answer) -> String {
    let code = answer.json()["error"].as_str().unwrap().to_owned();
    let told = challenges(answer).concat().contains(&format!("error=\"{code}\""));
    assert!(told, "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    code
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_wrong_with_a_token_is_401_and_reaches_no_upstream() {
    let machines = Machines::start().await;
    let now = machines.stack.now_secs();
    for claims in [
        json!({ "iss": "https://evil.example" }),
        json!({ "iss": null }),
        json!({ "aud": null }),
        json!({ "aud": CLIENT_ID }),
        json!({ "aud": "https://other.example" }),
        json!({ "exp": now - 61 }),
        json!({ "exp": null }),
        json!({ "nbf": now + 61 }),
        json!({ "iat": now + 61 }),
        json!({ "iat": null }),
        json!({ "sub": null }),
        json!({ "client_id": null }),
        json!({ "cnf": { "x5t#S256": "certificate" } }),
    ] {
        let answer = machines
            .bearer("/orders/7", &machines.token(claims.clone()))
            .await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (401, "invalid_token"),
            "{claims}"
        );
    }
    let with = |header: Value| {
        let claims = json!({ "aud": super::ORDERS, "scope": "orders:read" });
        machines.provider().access_token_with_header(header, claims)
    };
    let tokens = machines.provider().sign_in("openid orders:read");
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    let good = with(json!({}));
    let (signed, _) = good.rsplit_once('.').unwrap();
    for wrong in [
        with(json!({ "typ": "JWT" })),
        with(json!({ "typ": null })),
        with(json!({ "alg": "none" })),
        with(json!({ "alg": "HS256" })),
        with(json!({ "crit": ["exp"] })),
        with(json!({ "kid": "nobody-knows-me" })),
        format!("{signed}.{}", "A".repeat(342)),
        format!("{signed}."),
        text("id_token"),
        text("access_token"),
        text("refresh_token"),
        machines
            .provider()
            .logout_token(json!({ "sub": "alice", "aud": super::ORDERS, "client_id": "machine" })),
    ] {
        let answer = machines.bearer("/orders/7", &wrong).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (401, "invalid_token"),
            "{wrong}"
        );
    }
    assert_eq!(machines.upstream.requests().len(), 0);
    assert_eq!(machines.bearer("/orders/7", &good).await.status, 200);
    assert_eq!(machines.provider().calls(Endpoint::Introspection), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_beside_a_good_cookie_is_a_wrong_token() {
    let machines = Machines::start().await;
    let mut person = machines.person().await;
    assert_eq!(
        person.get("/orders/7").await.status,
        200,
        "what is asked of tokens is not asked of people"
    );
    let before = machines.stack.sessions.calls();
    for (authorization, status) in [
        ("Bearer forged", 401),
        ("bearer forged", 401),
        ("DPoP forged", 401),
        ("Bearer", 400),
        ("Bearer a b", 400),
    ] {
        let answer = person
            .get_with("/orders/7", &[("authorization", authorization)])
            .await;
        assert_eq!(answer.status, status, "{authorization}: {answer:?}");
    }
    let twice = [("authorization", "Basic x"), ("authorization", "Bearer forged")];
    assert_eq!(person.get_with("/orders/7", &twice).await.status, 400);
    let accepts = [("authorization", "Bearer forged"), ("accept", "text/html")];
    let answer = person.get_with("/orders/7", &accepts).await;
    assert_eq!(
        answer.header("content-type"),
        "application/json",
        "no person reads it: {answer:?}"
    );
    assert_eq!(machines.stack.sessions.calls(), before, "no cookie was looked at");
    assert_eq!(machines.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_scope_is_403_and_told_which() {
    let machines = Machines::start().await;
    for scope in [json!(null), json!(""), json!("orders"), json!("orders:read:all")] {
        let answer = machines
            .bearer("/orders/7", &machines.token(json!({ "scope": scope })))
            .await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (403, "insufficient_scope"),
            "{scope}"
        );
        assert!(
            challenges(&answer)[0].contains("scope=\"orders:read\""),
            "{answer:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_authorization_details_narrow_passes_only_where_the_route_says_so() {
    let machines = Machines::start().await;
    let narrowed = json!([{ "type": "payment_initiation", "actions": ["read"] }]);
    machines.say(json!({ "aud": super::ORDERS, "authorization_details": narrowed }));
    let jwt = machines.token(json!({ "authorization_details": narrowed }));
    for (path, token) in [
        ("/orders/7", jwt.clone()),
        ("/fresh/a", machines.token(json!({ "authorization_details": narrowed, "acr": "gold", "auth_time": machines.stack.now_secs() }))),
        ("/opaque/a", machines.opaque()),
        ("/asked/a", machines.opaque()),
        // A value that is not a list is not understood, so it narrows the token even more.
        ("/orders/7", machines.token(json!({ "authorization_details": {} }))),
        ("/orders/7", machines.token(json!({ "authorization_details": "all" }))),
    ] {
        let answer = machines.bearer(path, &token).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (403, "insufficient_scope"),
            "{path}"
        );
    }
    assert_eq!(machines.upstream.requests().len(), 0);
    assert_eq!(machines.bearer("/passed/a", &jwt).await.status, 200);
    assert_eq!(machines.bearer("/loose/a", &jwt).await.status, 200);
    for nothing in [json!([]), json!(null)] {
        let token = machines.token(json!({ "authorization_details": nothing }));
        assert_eq!(machines.bearer("/orders/7", &token).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_the_query_or_a_form_is_no_token() {
    let machines = Machines::start().await;
    let token = machines.token(json!({}));
    let mut client = machines.stack.browser();
    let answer = client.get(&format!("/orders/7?access_token={token}")).await;
    assert_eq!(answer.status, 401, "{answer:?}");
    let answer = client
        .post("/orders/7", &[], &format!("access_token={token}"))
        .await;
    assert_eq!(answer.status, 401, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_dies_at_its_end_also_where_its_signature_is_remembered() {
    let machines = Machines::start().await;
    let now = machines.stack.now_secs();
    let token = machines.token(json!({ "exp": now + 10 }));
    assert_eq!(machines.bearer("/orders/7", &token).await.status, 200);
    machines.stack.advance(70);
    assert_eq!(
        machines.bearer("/orders/7", &token).await.status,
        200,
        "a minute for the clocks"
    );
    machines.stack.advance(1);
    assert_eq!(machines.bearer("/orders/7", &token).await.status, 401);
    // A cached result does not open another resource.
    let token = machines.token(json!({}));
    assert_eq!(machines.bearer("/orders/7", &token).await.status, 200);
    assert_eq!(machines.bearer("/mcp", &token).await.status, 401);
    assert_eq!(machines.bearer("/bound/a", &token).await.status, 401);
    assert_eq!(machines.bearer("/admins/a", &token).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_forged_tokens_is_told_to_wait_and_others_are_not() {
    let machines = Machines::with("", &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let known = machines.token(json!({}));
    assert_eq!(machines.bearer("/orders/7", &known).await.status, 200);
    let good = machines.token(json!({}));
    let (signed, _) = good.rsplit_once('.').unwrap();
    let forged = format!("Bearer {signed}.{}", "A".repeat(342));
    let mut client = machines.stack.browser();
    let mut send = async |authorization: &str, from: &str| {
        let headers = [("authorization", authorization), ("x-forwarded-for", from)];
        client.get_with("/orders/7", &headers).await
    };
    let mut refused = 0;
    let limited = loop {
        let answer = send(&forged, "192.0.2.1").await;
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 401);
        refused += 1;
        assert!(refused <= 1_200, "never told to wait");
    };
    assert_eq!(refused, 1_200);
    assert!(!limited.header("retry-after").is_empty());
    let good = format!("Bearer {good}");
    assert_eq!(
        send(&good, "192.0.2.1").await.status,
        429,
        "it would have to be verified"
    );
    assert_eq!(
        send(&format!("Bearer {known}"), "192.0.2.1").await.status,
        200,
        "it is known"
    );
    assert_eq!(send(&good, "198.51.100.2").await.status, 200, "somebody else");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_cannot_be_had_let_nobody_in_and_keys_that_were_had_are_kept() {
    let machines = Machines::start().await;
    let token = machines.token(json!({}));
    machines.provider().stop();
    let answer = machines.bearer("/orders/7", &token).await;
    assert_eq!((answer.status, challenges(&answer).len()), (503, 0), "{answer:?}");
    assert!(!answer.header("retry-after").is_empty());
    machines.provider().start_again();
    let deadline = Instant::now() + Duration::from_secs(20);
    // Right after a failure the edge does not retry.
    while machines.bearer("/orders/7", &token).await.status != 200 {
        assert!(Instant::now() < deadline, "never asked again");
    }
    machines.provider().stop();
    assert_eq!(
        machines
            .bearer("/orders/7", &machines.token(json!({})))
            .await
            .status,
        200
    );
}
