//! How a client that knows nothing finds out where to get a token (RFC 9728, RFC 6750 section 3).

use reqwest::Method;
use serde_json::{Value, json};

use super::{Machines, challenges};

const METADATA: &str = "/.well-known/oauth-protected-resource";

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_token_is_led_to_the_metadata_and_by_it_to_the_provider() {
    let machines = Machines::start().await;
    let mut client = machines.stack.browser();
    let answer = client.get("/orders/7").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (401, crate::gateway::UNAUTHORIZED)
    );
    let base = machines.stack.base().to_owned();
    let lines = challenges(&answer);
    assert_eq!(
        lines[0],
        format!("Bearer scope=\"orders:read\", resource_metadata=\"{base}{METADATA}/orders\"")
    );
    assert!(
        lines[1].starts_with("DPoP scope=\"orders:read\", algs=\"") && lines[1].contains("ES256"),
        "{lines:?}"
    );
    assert!(!lines.concat().contains("error"), "it has made none: {lines:?}");

    let address = lines[0]
        .split("resource_metadata=\"")
        .nth(1)
        .unwrap()
        .trim_end_matches('"')
        .to_owned();
    let answer = client.get(address.strip_prefix(&base).unwrap()).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert_eq!(answer.header("cache-control"), "public, max-age=300");
    let document = answer.json();
    let algorithms = [
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
    ];
    assert_eq!(
        document,
        json!({
            "resource": format!("{base}/orders"),
            "authorization_servers": [machines.provider().issuer()],
            "scopes_supported": ["orders:read"],
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": algorithms,
            "dpop_bound_access_tokens_required": false,
        })
    );
    let document = client.get(&format!("{METADATA}/bound")).await.json();
    assert_eq!(document["dpop_bound_access_tokens_required"], true);
    assert_eq!(document.get("scopes_supported"), None);
    assert_eq!(machines.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_a_browser_may_ask_from_anywhere_and_only_read() {
    let machines = Machines::start().await;
    let mut client = machines.stack.browser();
    let path = format!("{METADATA}/mcp");
    let foreign = [
        ("origin", "https://elsewhere.example"),
        ("access-control-request-method", "GET"),
    ];
    let answer = client.send(Method::OPTIONS, &path, &foreign, None).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (204, "*")
    );
    assert_eq!(answer.header("access-control-allow-headers"), "*");
    assert_eq!(client.send(Method::HEAD, &path, &[], None).await.status, 200);
    let answer = client.post(&path, &[], "a=b").await;
    assert_eq!(
        (answer.status, answer.header("allow")),
        (405, "GET, HEAD, OPTIONS")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_route_with_the_key_covers_is_the_route_tables_as_ever() {
    let machines = Machines::start().await;
    let mut client = machines.stack.browser();
    for path in ["", "/", "/people", "/nowhere", "/api/auth/me", "/%2e%2e/orders"] {
        let answer = client.get(&format!("{METADATA}{path}")).await;
        assert!(matches!(answer.status, 404 | 400), "{path}: {answer:?}");
    }
    let whole = "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"{upstream}\"\n";
    let machines = Machines::with(whole, &[]).await;
    let mut client = machines.stack.browser();
    assert_eq!(
        client.get(METADATA).await.body,
        "upstream",
        "an upstream may publish its own"
    );
    assert_eq!(client.get(&format!("{METADATA}/people")).await.body, "upstream");
    assert!(
        client
            .get(&format!("{METADATA}/orders"))
            .await
            .body
            .contains("authorization_servers")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_site_that_takes_tokens_is_a_resource_by_its_origin() {
    let whole = "[[route]]\npath = \"/*\"\nguard = \"page\"\nupstream = \"{upstream}\"\n[route.bearer]\n";
    let machines = Machines::with(whole, &[]).await;
    let mut client = machines.stack.browser();
    let document: Value = client.get(METADATA).await.json();
    assert_eq!(document["resource"], machines.stack.base());
    let token = machines
        .provider()
        .access_token(json!({ "aud": machines.stack.base() }));
    assert_eq!(machines.bearer("/any/where", &token).await.status, 200);
    let answer = client.visit("/any/where").await;
    assert_eq!(
        (answer.status, challenges(&answer).len()),
        (307, 0),
        "a person is sent to sign in"
    );
    let answer = client
        .get_with("/any/where", &[("accept", "application/json")])
        .await;
    assert_eq!(answer.status, 401);
    assert!(
        challenges(&answer)[0].ends_with(&format!(
            "resource_metadata=\"{}{METADATA}\"",
            machines.stack.base()
        )),
        "{answer:?}"
    );
}
