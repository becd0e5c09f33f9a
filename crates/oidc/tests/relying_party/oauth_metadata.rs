//! Metadata members that only the RFC 8414 document has.

use std::time::Duration;

use oidc::{Par, RevocationResult, TokenHint};
use scripted_provider::{Answer, Endpoint};
use serde_json::{Value, json};

use crate::support::{Bench, NOW, bench, bench_with, param, request};

const PUSHED: &str = "pushed_authorization_request_endpoint";

/// Moves members from the first document to the second; adds another authorization endpoint there.
fn move_members(bench: &Bench, names: &[(&str, Endpoint)], issuer: &str) {
    let mut second = json!({ "issuer": issuer, "authorization_endpoint": "https://elsewhere.example/" });
    for (name, endpoint) in names {
        second[name] = json!(bench.provider.url(*endpoint));
    }
    bench.provider.script(|script| {
        for (name, _) in names {
            script.metadata.insert((*name).to_owned(), Value::Null);
        }
        script
            .answers
            .insert(Endpoint::OauthMetadata, Answer::json(200, &second));
    });
}

#[tokio::test]
async fn what_the_first_document_lacks_is_taken_from_the_second_and_nothing_else() {
    let bench = bench();
    let moved = [
        ("revocation_endpoint", Endpoint::Revocation),
        ("introspection_endpoint", Endpoint::Introspection),
        (PUSHED, Endpoint::Par),
    ];
    move_members(&bench, &moved, bench.provider.issuer());
    let revoked = bench.party.revoke("token", TokenHint::RefreshToken, NOW).await;
    assert_eq!(revoked.expect("an answer"), RevocationResult::Done);
    let unknown = bench.party.introspect("nobody-knows-me", NOW).await;
    assert_eq!(unknown.expect_err("unknown").reason(), "inactive");
    let url = bench.party.authorization_url(&request()).await.expect("a URL");
    assert!(
        url.as_str().starts_with(&bench.provider.url(Endpoint::Authorize)),
        "{url}"
    );
    assert_eq!(param(&url, "request_uri"), None, "nothing here needs a push");
    assert_eq!(
        bench.provider.calls(Endpoint::OauthMetadata),
        1,
        "by who needed it"
    );

    let required = bench_with(|settings| settings.par = Par::Require);
    move_members(&required, &moved, required.provider.issuer());
    let url = required.party.authorization_url(&request()).await.expect("a URL");
    assert!(param(&url, "request_uri").is_some(), "{url}");
}

#[tokio::test]
async fn a_second_document_that_is_wrong_is_none() {
    for (answer, issuer) in [
        (None, "https://evil.example"),
        (Some(Answer::status(404)), ""),
        (Some(Answer::text(200, "text/html", "<html>")), ""),
    ] {
        let bench = bench();
        move_members(&bench, &[("revocation_endpoint", Endpoint::Revocation)], issuer);
        if let Some(answer) = answer.clone() {
            answers(&bench, answer);
        }
        let revoked = bench.party.revoke("token", TokenHint::RefreshToken, NOW).await;
        assert_eq!(
            revoked.expect("metadata"),
            RevocationResult::NotOffered,
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_second_document_that_is_away_stops_only_who_needs_it_and_only_for_now() {
    for answer in [Answer::status(503), Answer::status(429), Answer::Hang] {
        let bench = bench();
        let moved = [("revocation_endpoint", Endpoint::Revocation)];
        move_members(&bench, &moved, bench.provider.issuer());
        answers(&bench, answer.clone());
        bench.party.authorization_url(&request()).await.expect("a URL");
        assert_eq!(
            bench.provider.calls(Endpoint::OauthMetadata),
            0,
            "nobody needs it"
        );
        let away = bench.party.revoke("token", TokenHint::RefreshToken, NOW).await;
        away.expect_err("it is to be tried again");

        move_members(&bench, &moved, bench.provider.issuer());
        let revoked = eventually_revoked(&bench).await;
        assert_eq!(revoked, RevocationResult::Done, "{answer:?}");
        answers(&bench, answer);
        let revoked = bench.party.revoke("token", TokenHint::RefreshToken, NOW).await;
        assert_eq!(revoked.expect("what was read before"), RevocationResult::Done);
    }
}

fn answers(bench: &Bench, answer: Answer) {
    bench
        .provider
        .script(|script| drop(script.answers.insert(Endpoint::OauthMetadata, answer)));
}

/// Revokes once the pause after a failed fetch is over.
async fn eventually_revoked(bench: &Bench) -> RevocationResult {
    let revoked = async {
        loop {
            match bench.party.revoke("token", TokenHint::RefreshToken, NOW).await {
                Ok(revoked) => return revoked,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), revoked)
        .await
        .expect("a revocation in time")
}

#[tokio::test]
async fn a_request_that_the_provider_wants_pushed_is_pushed_where_the_second_document_says() {
    let bench = bench();
    move_members(&bench, &[(PUSHED, Endpoint::Par)], bench.provider.issuer());
    bench.provider.script(|script| {
        let required = "require_pushed_authorization_requests".to_owned();
        script.metadata.insert(required, Value::Bool(true));
    });
    let url = bench.party.authorization_url(&request()).await.expect("a URL");
    assert!(param(&url, "request_uri").is_some(), "{url}");
}

#[tokio::test]
async fn a_first_document_that_has_all_is_the_only_one_that_is_read() {
    let bench = bench();
    bench.party.metadata().await.expect("metadata");
    let revoked = bench.party.revoke("token", TokenHint::RefreshToken, NOW).await;
    assert_eq!(revoked.expect("an answer"), RevocationResult::Done);
    assert_eq!(bench.provider.calls(Endpoint::OauthMetadata), 0);
}
