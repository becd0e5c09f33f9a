//! How a receiver proves who it is, and when it fetches another token.

use std::time::Duration;

use oidc::{ClientAuth, ClientCredentials, ClientSecret, TransmitterCredentials, TransmitterError};
use scripted_provider::{
    Answer, CLIENT_ID, CLIENT_SECRET, ScriptedTransmitter, TransmitterEndpoint as Endpoint,
};
use serde_json::{Value, json};
use url::Url;

use crate::support::{Bench, NOW, bench_with, reason};

type Auth = fn(ClientSecret) -> ClientAuth;

fn grant(scripted: &ScriptedTransmitter, auth: Auth, secret: &str) -> TransmitterCredentials {
    TransmitterCredentials::client_credentials(ClientCredentials {
        token_endpoint: Url::parse(&scripted.url(Endpoint::Token)).expect("a URL"),
        client_id: CLIENT_ID.to_owned(),
        auth: auth(ClientSecret::new(secret.to_owned())),
        scope: Some("ssf.manage ssf.read".to_owned()),
    })
    .expect("a secure endpoint")
}

fn granted() -> Bench {
    bench_with(|scripted| grant(scripted, ClientAuth::SecretBasic, CLIENT_SECRET))
}

fn say(bench: &Bench, name: &str, value: Value) {
    bench.scripted.script(|script| {
        script.token.insert(name.to_owned(), value);
    });
}

/// Lets time pass for tokens; the network is only used while the clock runs.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[test]
fn a_token_is_made_of_the_letters_of_tokens() {
    for token in ["t", "a.b-c_d~e+f/g==", " a\r\n"] {
        assert!(TransmitterCredentials::bearer(token).is_some(), "{token:?}");
    }
    for token in ["", " \n", "a b", "a\nb", "a\u{e9}", "a:b", "Bearer a"] {
        assert!(TransmitterCredentials::bearer(token).is_none(), "{token:?}");
    }
    let plain = ClientCredentials {
        token_endpoint: Url::parse("http://as.example.com/token").expect("a URL"),
        client_id: "a".to_owned(),
        auth: ClientAuth::None,
        scope: None,
    };
    assert!(TransmitterCredentials::client_credentials(plain).is_none());
}

#[tokio::test]
async fn one_token_serves_until_shortly_before_its_end() {
    for auth in [ClientAuth::SecretBasic as Auth, ClientAuth::SecretPost] {
        let bench = bench_with(|scripted| grant(scripted, auth, CLIENT_SECRET));
        say(&bench, "expires_in", json!(90));
        let all = async || bench.transmitter.streams(NOW).await.expect("streams");
        tokio::join!(all(), all(), all());
        let request = bench.scripted.last_request(Endpoint::Token);
        assert_eq!(request.param("grant_type"), Some("client_credentials"));
        assert_eq!(request.param("scope"), Some("ssf.manage ssf.read"));
        assert_eq!(bench.scripted.calls(Endpoint::Token), 1);
        later(Duration::from_secs(59)).await;
        all().await;
        assert_eq!(bench.scripted.calls(Endpoint::Token), 1);
        later(Duration::from_secs(1)).await;
        all().await;
        assert_eq!(bench.scripted.calls(Endpoint::Token), 2);
    }
}

#[tokio::test]
async fn how_long_a_token_lives_is_believed_within_bounds() {
    for (told, good_secs) in [
        (json!(null), 269),
        (json!("100"), 69),
        (json!(10), 4),
        (json!(1e12), 86_369),
    ] {
        let bench = granted();
        say(&bench, "expires_in", told.clone());
        let all = async || bench.transmitter.streams(NOW).await.expect("streams");
        all().await;
        later(Duration::from_secs(good_secs)).await;
        all().await;
        assert_eq!(bench.scripted.calls(Endpoint::Token), 1, "{told}");
        later(Duration::from_secs(2)).await;
        all().await;
        assert_eq!(bench.scripted.calls(Endpoint::Token), 2, "{told}");
    }
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_fetched_anew_once() {
    let bench = granted();
    bench.transmitter.streams(NOW).await.expect("streams");
    bench.scripted.forget_tokens();
    bench
        .transmitter
        .streams(NOW)
        .await
        .expect("streams, by another token");
    assert_eq!(bench.scripted.calls(Endpoint::Token), 2);
    assert_eq!(bench.scripted.calls(Endpoint::Streams), 3);
    bench.scripted.script(|script| {
        script.answers.insert(Endpoint::Streams, Answer::status(401));
    });
    assert_eq!(reason(bench.transmitter.streams(NOW).await), "unauthorized");
    assert_eq!(bench.scripted.calls(Endpoint::Token), 3);
    assert_eq!(bench.scripted.calls(Endpoint::Streams), 5);
}

#[tokio::test]
async fn a_token_that_was_given_is_replaced_by_its_owner_alone() {
    let bench = bench_with(|_| TransmitterCredentials::bearer("old").expect("a token"));
    assert_eq!(reason(bench.transmitter.streams(NOW).await), "unauthorized");
    assert_eq!(
        bench.scripted.calls(Endpoint::Streams),
        1,
        "nothing is gained by a second try"
    );
    let given = TransmitterCredentials::bearer(ScriptedTransmitter::TOKEN).expect("a token");
    bench.transmitter.replace_credentials(given).expect("usable");
    assert!(bench.transmitter.streams(NOW).await.is_ok());
    bench.transmitter.reload(None).expect("usable");
    assert!(
        bench.transmitter.streams(NOW).await.is_ok(),
        "a new proxy changes no credentials"
    );
    bench
        .transmitter
        .replace_credentials(TransmitterCredentials::none())
        .expect("usable");
    assert_eq!(reason(bench.transmitter.streams(NOW).await), "unauthorized");
    assert_eq!(
        bench
            .scripted
            .last_request(Endpoint::Streams)
            .header("authorization"),
        None
    );
}

#[tokio::test]
async fn who_is_not_believed_is_told_by_the_authorization_server() {
    let bench = bench_with(|scripted| grant(scripted, ClientAuth::SecretBasic, "wrong"));
    let refused = bench.transmitter.streams(NOW).await.expect_err("not our secret");
    assert!(
        matches!(refused, TransmitterError::TokenRefused(_)),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("invalid_client"), "{refused}");
    assert_eq!(bench.scripted.calls(Endpoint::Streams), 0);

    let bench = granted();
    for (name, value) in [
        ("token_type", json!("DPoP")),
        ("token_type", json!(null)),
        ("access_token", json!(null)),
        ("access_token", json!("a b")),
    ] {
        bench.scripted.script(|script| script.token.clear());
        say(&bench, name, value.clone());
        assert_eq!(
            reason(bench.transmitter.streams(NOW).await),
            "token_unusable",
            "{name} {value}"
        );
    }
    for answer in [Answer::status(500), Answer::status(401), Answer::status(200)] {
        bench.answer_once(Endpoint::Token, answer);
        assert_eq!(reason(bench.transmitter.streams(NOW).await), "token");
    }
}

#[tokio::test]
async fn tokens_and_secrets_are_in_no_debug_output_and_no_error() {
    let bench = granted();
    bench.transmitter.streams(NOW).await.expect("streams");
    let settings = bench.transmitter.settings();
    let given = TransmitterCredentials::bearer("hunter2").expect("a token");
    for shown in [format!("{settings:?}"), format!("{given:?}")] {
        for secret in [CLIENT_SECRET, "hunter2", "access-1"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
