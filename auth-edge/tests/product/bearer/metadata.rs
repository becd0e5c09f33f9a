//! How a new client finds out where to get a token (RFC 9728, RFC 6750 section 3).

use reqwest::Method;
use serde_json::{Value, json};

use super::{Machines, ORDERS, challenges};
use crate::support::Browser;

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
        format!("Bearer scope=\"orders:read\", resource_metadata=\"{base}{METADATA}/orders/7\"")
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
            "resource": ORDERS,
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

/// The resource in the challenge of this address.
async fn discovered(client: &mut Browser, base: &str, path: &str) -> String {
    let answer = client.get(path).await;
    assert_eq!(answer.status, 401, "{path}");
    let challenge = challenges(&answer).remove(0);
    let (_, url) = challenge.split_once("resource_metadata=\"").unwrap();
    let url = url.split('"').next().unwrap();
    let document = client.get(url.strip_prefix(base).unwrap()).await.json();
    document["resource"].as_str().unwrap().to_owned()
}

/// Whether MCP's libraries use the metadata: same origin, and its path is a prefix of the request's.
fn is_taken_by_mcp_libraries(resource: &str, requested: &str) -> bool {
    let closed = |url: &str| format!("{}/", url.trim_end_matches('/'));
    closed(requested).starts_with(&closed(resource))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_is_the_url_requested_and_a_token_for_it_passes() {
    let rule = |path: &str| {
        format!(
            "[[route]]\npath = \"{path}\"\nguard = \"api\"\nupstream = \"{{upstream}}\"\n[route.bearer]\n"
        )
    };
    let machines = Machines::with(&(rule("/rs/*") + &rule("/rs/inner/*")), &[]).await;
    let base = machines.stack.base().to_owned();
    let mut client = machines.stack.browser();
    for (path, resource) in [
        ("/rs", "/rs"),
        ("/rs/", "/rs/"),
        ("/rs/x", "/rs/x"),
        ("/rs/x/y?page=2", "/rs/x/y"),
        ("/rs/a%20b", "/rs/a%20b"),
        ("/mcp", "/mcp"),
    ] {
        let resource = format!("{base}{resource}");
        let discovered = discovered(&mut client, &base, path).await;
        // RFC 9728, section 3.3: a client uses metadata only for the URL it requested.
        assert_eq!(discovered, resource, "{path}");
        let requested = format!("{base}{}", path.split('?').next().unwrap());
        assert!(is_taken_by_mcp_libraries(&discovered, &requested), "{path}");
        let token = machines.provider().access_token(json!({ "aud": resource }));
        assert_eq!(machines.bearer(path, &token).await.status, 200, "{path}");
    }
    for (aud, path, status) in [
        ("/rs", "/rs/x/y", 200),
        ("/rs/x", "/rs/x/y", 200),
        ("/rs/x/", "/rs/x", 200),
        ("/rs/x", "/rs/y", 401),
        ("/rs/x", "/rs/xy", 401),
        ("/rs/x", "/rs", 401),
        ("/rs/x", "/rs/x/../y", 401),
        ("/rs/x", "/rs/x/%2e%2e/y", 401),
        ("/rs/x?page=2", "/rs/x", 401),
        ("/rs", "/rs/inner/z", 401),
        ("/rs/inner", "/rs/inner/z", 200),
        ("/", "/rs/x", 401),
        ("", "/rs/x", 401),
        (".evil.example/rs", "/rs/x", 401),
        ("@evil.example/rs", "/rs/x", 401),
    ] {
        let token = machines
            .provider()
            .access_token(json!({ "aud": format!("{base}{aud}") }));
        assert_eq!(
            machines.bearer(path, &token).await.status,
            status,
            "{aud} at {path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_of_a_route_with_an_audience_is_that_audience_alone() {
    let machines = Machines::start().await;
    let base = machines.stack.base().to_owned();
    let mut client = machines.stack.browser();
    for path in ["/orders", "/orders/7"] {
        let resource = discovered(&mut client, &base, path).await;
        assert_eq!(resource, ORDERS);
        let token = machines.token(json!({ "aud": resource }));
        assert_eq!(machines.bearer(path, &token).await.status, 200);
        let token = machines.token(json!({ "aud": format!("{base}{path}") }));
        assert_eq!(machines.bearer(path, &token).await.status, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_makes_the_head_of_a_challenge_long_or_breaks_it() {
    let machines = Machines::with(
        "[[route]]\npath = \"/rs/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\n[route.bearer]\n",
        &[],
    )
    .await;
    let mut client = machines.stack.browser();
    let long = client.get(&format!("/rs/{}", "x".repeat(6_000))).await;
    assert_eq!(long.status, 401);
    assert!(challenges(&long).concat().len() < 2_048, "{long:?}");
    let quoted = client.get("/rs/a%22b").await;
    let bearer = challenges(&quoted).remove(0);
    assert_eq!(bearer.matches('"').count(), 2, "{bearer}");
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
    // As URL libraries write it.
    let closed = format!("{}/", machines.stack.base());
    let token = machines.provider().access_token(json!({ "aud": closed }));
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
            "resource_metadata=\"{}{METADATA}/any/where\"",
            machines.stack.base()
        )),
        "{answer:?}"
    );
}
