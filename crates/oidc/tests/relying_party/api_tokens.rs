//! Tokens for single APIs: the request, and the accepted parts of the answer (RFC 8693, RFC 8707).

use oidc::{ApiTokenGrant, GrantError, TokenTarget, is_resource};
use scripted_provider::Endpoint;
use serde_json::json;

use crate::support::{NOW, bench, bench_with, dpop_key};

const ORDERS: TokenTarget<'_> = TokenTarget {
    audience: Some("orders"),
    resource: Some("https://orders.example/"),
    scope: Some("read write"),
};
const NOTHING_MORE: TokenTarget<'_> = TokenTarget {
    audience: Some("orders"),
    resource: None,
    scope: None,
};

#[tokio::test]
async fn an_exchange_shows_the_access_token_and_names_the_api() {
    let bench = bench();
    let tokens = bench.exchange().await.expect("tokens");
    let exchanged = bench
        .party
        .exchange_token(&tokens.access_token, &ORDERS, NOW)
        .await;
    let exchanged = exchanged.expect("a token");
    assert_ne!(exchanged.access_token, tokens.access_token);
    assert_eq!(
        (exchanged.expires_at, exchanged.refresh_token),
        (NOW + 3_600, None)
    );
    let sent = bench.provider.last_request(Endpoint::Token);
    assert_eq!(sent.param("subject_token"), Some(tokens.access_token.as_str()));
    assert_eq!(
        ["audience", "resource", "scope"].map(|name| sent.param(name)),
        [ORDERS.audience, ORDERS.resource, ORDERS.scope]
    );
    bench
        .party
        .exchange_token(&tokens.access_token, &NOTHING_MORE, NOW)
        .await
        .expect("a token");
    let sent = bench.provider.last_request(Endpoint::Token);
    assert_eq!((sent.param("resource"), sent.param("scope")), (None, None));
}

#[tokio::test]
async fn an_exchanged_token_is_bound_to_the_key_or_of_no_use() {
    let bench = bench_with(|settings| settings.credentials.dpop_key = Some(dpop_key()));
    bench.provider.script(|script| script.dpop = true);
    let tokens = bench.exchange().await.expect("tokens");
    let exchanged = bench
        .party
        .exchange_token(&tokens.access_token, &ORDERS, NOW)
        .await;
    assert_eq!(exchanged.expect("a token").token_type, "DPoP");
    assert!(
        bench
            .provider
            .last_request(Endpoint::Token)
            .header("dpop")
            .is_some()
    );
    bench
        .provider
        .script(|script| _ = script.exchange.insert("token_type".into(), json!("Bearer")));
    let bearer = bench
        .party
        .exchange_token(&tokens.access_token, &ORDERS, NOW)
        .await;
    assert!(matches!(bearer, Err(GrantError::Unusable(_))), "{bearer:?}");
}

#[tokio::test]
async fn only_an_access_token_is_taken_for_one() {
    let bench = bench();
    let tokens = bench.exchange().await.expect("tokens");
    for (kind, is_taken) in [
        (json!("urn:ietf:params:oauth:token-type:access_token"), true),
        (json!("urn:ietf:params:oauth:token-type:jwt"), true),
        (json!(null), true),
        (json!("urn:ietf:params:oauth:token-type:refresh_token"), false),
        (json!("urn:ietf:params:oauth:token-type:id_token"), false),
    ] {
        bench
            .provider
            .script(|script| _ = script.exchange.insert("issued_token_type".into(), kind.clone()));
        let exchanged = bench
            .party
            .exchange_token(&tokens.access_token, &ORDERS, NOW)
            .await;
        assert_eq!(exchanged.is_ok(), is_taken, "{kind}");
    }
}

#[tokio::test]
async fn a_refresh_for_an_api_names_it_and_no_other() {
    let resources = ["https://first.example/", "https://second.example/"];
    let bench = bench_with(|settings| {
        settings.resources = resources.map(str::to_owned).to_vec();
        settings.api_token_grant = ApiTokenGrant::Refresh;
    });
    let tokens = bench.exchange().await.expect("tokens");
    let named = || -> Vec<String> {
        let sent = bench.provider.last_request(Endpoint::Token);
        let resources = sent.form.into_iter().filter(|(name, _)| name == "resource");
        resources.map(|(_, resource)| resource).collect()
    };
    assert_eq!(
        named(),
        [resources[0]],
        "the session's own token is for the first"
    );
    let refresh_token = tokens.refresh_token.expect("a refresh token");
    let refreshed = bench.party.refresh_for(&refresh_token, &ORDERS, NOW).await;
    assert!(refreshed.expect("a token").refresh_token.is_some());
    assert_eq!(named(), [ORDERS.resource.unwrap_or_default()]);
}

#[test]
fn a_resource_is_an_absolute_uri_without_a_fragment() {
    for (text, fits) in [
        ("https://orders.example/api?version=1", true),
        ("urn:example:orders", true),
        ("api://orders", true),
        ("orders", false),
        ("/orders", false),
        ("https://orders.example/#a", false),
        ("https://orders.example/#", false),
        ("https://orders.example/\u{e4}", false),
        ("", false),
    ] {
        assert_eq!(is_resource(text), fits, "{text}");
    }
    assert!(!is_resource(&format!(
        "https://orders.example/{}",
        "a".repeat(2_048)
    )));
}
