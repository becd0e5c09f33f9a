//! What a valid token opens, and what its upstream receives.

use reqwest::Method;
use serde_json::json;

use super::{Machines, challenges};
use crate::support::Log;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_passes_by_its_token_and_the_upstream_learns_who_it_is() {
    let machines = Machines::start().await;
    let token = machines.token(json!({}));
    let answer = machines
        .stack
        .browser()
        .get_with(
            "/orders/7",
            &[
                ("authorization", &format!("Bearer {token}")),
                ("x-auth-client", "root"),
                ("X_Auth_Session", "any"),
            ],
        )
        .await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, "upstream"),
        "{answer:?}"
    );
    let seen = &machines.upstream.requests()[0];
    assert_eq!(seen.all("x-auth-subject"), ["alice"]);
    assert_eq!(seen.all("x-auth-issuer"), [machines.provider().issuer()]);
    assert_eq!(seen.all("x-auth-client"), ["machine"]);
    for absent in [
        "x-auth-session",
        "x_auth_session",
        "authorization",
        "dpop",
        "cookie",
    ] {
        assert_eq!(seen.all(absent), Vec::<String>::new(), "{absent}");
    }
    assert_eq!(
        answer.header("cache-control"),
        "no-store",
        "what a token has opened is for no cache"
    );
    assert!(answer.header("vary").contains("authorization"), "{answer:?}");
    assert!(answer.set_cookie("session").is_none() && challenges(&answer).is_empty());
    assert_eq!(machines.stack.sessions.calls(), 0);
    assert_eq!(machines.stack.counter("access_tokens_total", "accepted"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_routes_own_address_is_enough_where_no_audience_is_written() {
    let machines = Machines::start().await;
    let resource = format!("{}/mcp", machines.stack.base());
    let token = |aud: &str| machines.provider().access_token(json!({ "aud": aud }));
    for own in [resource.clone(), format!("{resource}/")] {
        assert_eq!(machines.bearer("/mcp", &token(&own)).await.status, 200, "{own}");
    }
    for other in [
        machines.stack.base(),
        "https://orders.example",
        &format!("{resource}/other"),
    ] {
        assert_eq!(
            machines.bearer("/mcp", &token(other)).await.status,
            401,
            "{other}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_own_authorization_goes_on_only_where_the_route_says_so() {
    let machines = Machines::start().await;
    let token = machines.token(json!({}));
    assert_eq!(machines.bearer("/passed/a", &token).await.status, 200);
    assert_eq!(
        machines.upstream.requests()[0].all("authorization"),
        [format!("Bearer {token}")]
    );
    // The key belongs to the checked token. A session has another token, and a client cannot replace it.
    let mut person = machines.person().await;
    let answer = person
        .get_with("/passed/a", &[("authorization", "Basic dXNlcjpwYXNz")])
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        machines.upstream.requests()[1].all("authorization"),
        ["Bearer token-of-person-1"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_site_can_send_a_token_so_nothing_has_to_prove_it_did_not() {
    let machines = Machines::start().await;
    let authorization = format!("Bearer {}", machines.token(json!({})));
    let foreign = [
        ("authorization", authorization.as_str()),
        ("origin", "https://elsewhere.example"),
        ("sec-fetch-site", "cross-site"),
    ];
    let mut client = machines.stack.browser();
    for method in [Method::POST, Method::DELETE] {
        assert_eq!(client.send(method, "/orders/7", &foreign, None).await.status, 200);
    }
    let mut person = machines.person().await;
    let answer = person.send(Method::POST, "/orders/7", &foreign[1..], None).await;
    assert_eq!(answer.status, 403, "a cookie is another matter: {answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_passes_as_ever_and_carries_no_token_past_the_guard() {
    let machines = Machines::start().await;
    let preflight = [
        ("origin", "https://elsewhere.example"),
        ("access-control-request-method", "POST"),
        ("authorization", "Bearer forged"),
    ];
    let mut client = machines.stack.browser();
    assert_eq!(
        client
            .send(Method::OPTIONS, "/orders/7", &preflight[..2], None)
            .await
            .status,
        200
    );
    assert_eq!(
        client
            .send(Method::OPTIONS, "/orders/7", &preflight, None)
            .await
            .status,
        401
    );
    assert_eq!(machines.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_route_asks_of_everybody_it_asks_of_a_token_by_its_claims() {
    let machines = Machines::start().await;
    let now = machines.stack.now_secs();
    for (path, claims, status, said) in [
        (
            "/fresh/a",
            json!({ "auth_time": now - 899, "acr": "gold" }),
            200,
            "",
        ),
        (
            "/fresh/a",
            json!({ "auth_time": now - 901, "acr": "gold" }),
            401,
            "max_age=\"900\"",
        ),
        (
            "/fresh/a",
            json!({ "auth_time": now, "acr": "silver" }),
            401,
            "acr_values=\"gold\"",
        ),
        (
            "/fresh/a",
            json!({ "acr": "gold" }),
            401,
            "insufficient_user_authentication",
        ),
        (
            "/admins/a",
            json!({ "groups": ["admin"], "scope": "orders:read orders:write" }),
            200,
            "",
        ),
        (
            "/admins/a",
            json!({ "groups": ["users"], "scope": "orders:write" }),
            403,
            "",
        ),
        (
            "/admins/a",
            json!({ "groups": ["admin"] }),
            403,
            "error=\"insufficient_scope\", error_description=\"The access token lacks a required scope.\", scope=\"orders:write\"",
        ),
    ] {
        let answer = machines.bearer(path, &machines.token(claims.clone())).await;
        assert_eq!(answer.status, status, "{path} {claims}: {answer:?}");
        assert!(
            challenges(&answer).concat().contains(said),
            "{path} {claims}: {answer:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_without_the_key_takes_no_token_and_judges_none() {
    let machines = Machines::start().await;
    let token = machines.token(json!({}));
    let answer = machines.bearer("/people/a", &token).await;
    assert_eq!((answer.status, challenges(&answer).len()), (401, 0));
    let mut person = machines.person().await;
    let answer = person
        .get_with("/people/a", &[("authorization", "Bearer any")])
        .await;
    assert_eq!(answer.status, 200, "as ever, it is the upstream's affair");
    assert_eq!(
        machines.upstream.requests()[0].all("authorization"),
        ["Bearer any"]
    );
    assert_eq!(
        machines.upstream.requests()[0].all("x-auth-client"),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn the_record_names_the_client_and_holds_no_token() {
    let machines = Machines::start().await;
    let (good, late) = (machines.token(json!({})), machines.token(json!({ "exp": 1 })));
    // Log records of other tests in this process may hide a first record.
    for attempt in 1.. {
        let log = Log::begin();
        assert_eq!(machines.bearer("/orders/7", &good).await.status, 200);
        assert_eq!(machines.bearer("/orders/7", &late).await.status, 401);
        let written = log.text();
        for token in [&good, &late] {
            assert!(!written.contains(token.rsplit('.').next().unwrap()), "{written}");
        }
        let records = |texts: &[&str]| {
            let mut lines = written.lines();
            lines.any(|line| texts.iter().all(|text| line.contains(text)))
        };
        if records(&[
            "http.route=\"/orders/*\"",
            "oauth.client_id=\"machine\"",
            "status_code=200",
        ]) && records(&["an access token was refused", "reason=\"expired\""])
        {
            return;
        }
        assert!(attempt < 50, "{written}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_meets_the_list_of_who_may_pass_like_a_session() {
    let allow = "[allow]\nemail_domains = [\"example.com\"]\n";
    let machines = Machines::with(allow, &[]).await;
    for (claims, status) in [
        (json!({"email": "ada@example.com", "email_verified": true}), 200),
        (json!({"email": "ada@example.com"}), 403),
        (json!({"email": "ada@elsewhere.com", "email_verified": true}), 403),
        (json!({}), 403),
    ] {
        let token = machines.token(claims.clone());
        assert_eq!(
            machines.bearer("/orders/7", &token).await.status,
            status,
            "{claims}"
        );
    }
    let machines = Machines::with("[allow]\nnetworks = [\"192.0.2.0/24\"]\n", &[]).await;
    let token = machines.token(json!({}));
    assert_eq!(machines.bearer("/orders/7", &token).await.status, 403);
}
