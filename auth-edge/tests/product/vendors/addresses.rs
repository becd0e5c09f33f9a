//! A provider with one address for browsers and another for pods.

use scripted_provider::{Endpoint, ScriptedProvider};
use serde_json::json;

use super::stand_in::StandIn;

/// The address for browsers. Neither service can reach it.
const FOR_BROWSERS: &str = "http://127.0.0.1:1";

/// The provider's issuer is the address for browsers.
fn known_by_another_address() -> ScriptedProvider {
    let provider = ScriptedProvider::start();
    provider.script(|script| {
        script.metadata.insert("issuer".into(), json!(FOR_BROWSERS));
        script.claims.insert("iss".into(), json!(FOR_BROWSERS));
        script.callback_iss = Some(FOR_BROWSERS.to_owned());
    });
    provider
}

#[tokio::test]
async fn metadata_come_from_their_own_address_and_the_issuer_stays_what_it_is() {
    let provider = known_by_another_address();
    let line = format!("metadata_url = \"{}\"", provider.url(Endpoint::Discovery));
    let started = StandIn::start(provider, FOR_BROWSERS, &line, &[]).await;
    let mut browser = started.stack.browser();
    browser.sign_in().await;
    let refetched = browser.get("/api/auth/me?refetch=true").await;
    assert_eq!(
        (refetched.status, refetched.json()["sub"].as_str()),
        (200, Some("alice"))
    );
    started.stack.advance(4_000);
    let refreshed = browser.get("/api/auth/me?refetch=true").await;
    assert_eq!(refreshed.status, 200, "{refreshed:?}");
    assert_eq!(started.stack.provider.grants("refresh_token"), 1);

    started.stack.provider.script(|script| {
        script
            .metadata
            .insert("issuer".into(), json!("http://127.0.0.1:2"));
    });
    let other = StandIn::start(ScriptedProvider::start(), FOR_BROWSERS, &line, &[]).await;
    let login = other.stack.browser().visit("/api/auth/login").await;
    assert_eq!(
        login.status, 502,
        "another issuer in the metadata is refused: {login:?}"
    );
}

#[tokio::test]
async fn single_endpoints_take_the_place_of_those_in_the_metadata() {
    let provider = known_by_another_address();
    let of_pods = |endpoint| provider.url(endpoint);
    let lines = format!(
        "metadata_url = \"{}\"\nendpoints = [\"authorization_endpoint={}\", \"token_endpoint={}\", \"jwks_uri={}\", \
         \"userinfo_endpoint={}\", \"end_session_endpoint={}?pool=1\"]",
        of_pods(Endpoint::Discovery),
        of_pods(Endpoint::Authorize),
        of_pods(Endpoint::Token),
        of_pods(Endpoint::Jwks),
        of_pods(Endpoint::Userinfo),
        of_pods(Endpoint::EndSession),
    );
    provider.script(|script| {
        for member in [
            "authorization_endpoint",
            "token_endpoint",
            "jwks_uri",
            "userinfo_endpoint",
        ] {
            script
                .metadata
                .insert(member.into(), json!("http://127.0.0.1:1/nowhere"));
        }
        script.metadata.insert("end_session_endpoint".into(), json!(null));
    });
    let started = StandIn::start(provider, FOR_BROWSERS, &lines, &[]).await;
    let mut browser = started.stack.browser();
    browser.sign_in().await;
    assert_eq!(browser.get("/api/auth/me?refetch=true").await.status, 200);
    let logout = browser.visit("/api/auth/logout").await;
    let begins = format!("{}?pool=1&", started.stack.provider.url(Endpoint::EndSession));
    assert!(logout.location().starts_with(&begins), "{logout:?}");
}
