//! Tokens of providers that follow no RFC 9068, and tokens without an audience, on routes and checks.

use serde_json::{Value, json};

use super::{Machines, ORDERS, challenges};

/// Routes and a check that take the tokens of one client without an audience.
const RULES: &str = r#"
[[route]]
path = "/named/*"
guard = "api"
upstream = "{upstream}"
[route.bearer]
audience = "https://orders.example"
clients = ["cli"]
scopes = ["orders:read"]

[[route]]
path = "/named-opaque/*"
guard = "api"
upstream = "{upstream}"
[route.bearer]
audience = "https://orders.example"
clients = ["cli"]
introspection = true

[[check]]
host = "orders.localhost"
guard = "api"
[check.bearer]
clients = ["cli"]
scopes = ["orders:read"]
"#;

async fn machines(shape: &str) -> Machines {
    let settings = [
        ("OIDC_ACCESS_TOKENS", shape),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    Machines::with(RULES, &settings).await
}

/// A Cognito token with these claims.
fn cognito(machines: &Machines, claims: Value) -> String {
    let mut own = json!({ "client_id": "cli", "token_use": "access", "scope": "orders:read", "version": 2 });
    for (name, value) in claims.as_object().unwrap() {
        own[name] = value.clone();
    }
    let typ = json!({ "typ": null });
    machines.provider().access_token_with_header(typ, own)
}

async fn check(machines: &Machines, token: &str) -> u16 {
    let authorization = format!("Bearer {token}");
    let asked = [
        ("x-forwarded-method", "GET"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "orders.localhost"),
        ("x-forwarded-uri", "/orders/7"),
        ("authorization", &authorization),
    ];
    let mut proxy = machines.stack.browser();
    proxy.get_with("/api/auth/check", &asked).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_client_passes_without_an_audience_and_its_id_token_does_not() {
    let machines = machines("cognito").await;
    let good = cognito(&machines, json!({}));
    let answer = machines.bearer("/named/a", &good).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(machines.upstream.requests()[0].all("x-auth-client"), ["cli"]);
    assert_eq!(check(&machines, &good).await, 200);
    let answer = machines.bearer("/orders/a", &good).await;
    assert_eq!(answer.status, 401, "the route names no client");
    assert!(
        challenges(&answer).concat().contains("names no audience"),
        "{answer:?}"
    );
    for (claims, status) in [
        (json!({ "aud": ORDERS }), 200),
        (json!({ "aud": "https://elsewhere.example" }), 401),
        (json!({ "client_id": "another" }), 401),
        (json!({ "scope": "openid" }), 403),
        (json!({ "token_use": "id", "aud": "cli", "client_id": null }), 401),
        (json!({ "nonce": "n" }), 401),
    ] {
        let token = cognito(&machines, claims.clone());
        assert_eq!(
            machines.bearer("/named/a", &token).await.status,
            status,
            "{claims}"
        );
    }
    let id_token = cognito(
        &machines,
        json!({ "token_use": "id", "aud": "cli", "client_id": null }),
    );
    assert_eq!(check(&machines, &id_token).await, 401);
    assert_eq!(machines.stack.counter("access_tokens_total", "shape"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_such_a_token_is_none() {
    let machines = machines("rfc9068").await;
    let token = cognito(&machines, json!({ "aud": ORDERS }));
    let answer = machines.bearer("/named/a", &token).await;
    assert_eq!(answer.status, 401);
    assert!(challenges(&answer).concat().contains("typ"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn introspection_without_an_audience_counts_for_the_clients_of_the_route() {
    let machines = machines("rfc9068").await;
    machines.say(json!({ "token_type": "access_token", "client_id": "cli" }));
    let answer = machines.bearer("/named-opaque/a", &machines.opaque()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = machines.bearer("/opaque/a", &machines.opaque()).await;
    assert_eq!(answer.status, 401, "the route names no client");
    assert!(answer.body.contains("names no audience"), "{answer:?}");
    machines.say(json!({ "token_type": "access_token", "client_id": "another" }));
    assert_eq!(
        machines
            .bearer("/named-opaque/a", &machines.opaque())
            .await
            .status,
        401
    );
    machines.say(json!({ "token_type": "refresh_token", "client_id": "cli" }));
    let answer = machines.bearer("/named-opaque/a", &machines.opaque()).await;
    assert_eq!(answer.status, 401);
    assert!(
        answer.body.contains("token_type") && !answer.body.contains("at+jwt"),
        "{answer:?}"
    );
}
